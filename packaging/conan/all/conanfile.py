"""The headers and their CMake package. `host_backend` brings Boost.Context, which programs without CUDA need."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2.0"


class WarpheapConan(ConanFile):
    name = "warpheap"
    description = "Dynamic memory for GPU threads: a header-only CUDA C++20 library"
    license = "Apache-2.0"
    url = "https://github.com/conan-io/conan-center-index"
    homepage = "@REPOSITORY@"
    topics = ("cuda", "gpu", "malloc", "allocator", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"host_backend": [True, False]}
    default_options = {"host_backend": False}

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        if self.options.host_backend:
            self.requires("boost/[>=1.74]")

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"{self.ref} is for Linux")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "TOOL", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"WARPHEAP_{part}"] = False
        toolchain.generate()

    def package(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.install(component="Development")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        # The package that CMake installed says what programs need.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "warpheap")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
