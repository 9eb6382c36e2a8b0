set(VCPKG_BUILD_TYPE release) # headers only

vcpkg_download_distfile(
  ARCHIVE
  URLS "@ARCHIVE_URL@"
  FILENAME "warpheap-@VERSION@.tar.gz"
  SHA512 @SHA512@)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DWARPHEAP_TESTS=OFF -DWARPHEAP_TOOL=OFF -DWARPHEAP_EXAMPLES=OFF -DWARPHEAP_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/warpheap)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
