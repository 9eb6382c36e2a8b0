include(FetchContent)
FetchContent_Declare(
  warpheap
  URL "@ARCHIVE_URL@"
  URL_HASH SHA256=@SHA256@)
FetchContent_MakeAvailable(warpheap)
target_link_libraries(main PRIVATE warpheap::warpheap)
