# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Warpheap(CMakePackage):
    """Dynamic memory for GPU threads: a header-only CUDA C++20 library whose malloc and free a
    hundred thousand threads can call at the same instant."""

    homepage = "@REPOSITORY@"
    url = "@ARCHIVE_URL@"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("host_backend", default=False, description="Boost.Context, for programs without CUDA")
    variant("tool", default=False, description="The command-line tool, on the host backend")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("boost@1.74: +context", when="+host_backend")
    with when("+tool"):
        depends_on("boost@1.74: +context")
        depends_on("cli11", type="build")
        depends_on("nlohmann-json", type="build")
        depends_on("fmt", type="build")

    conflicts("platform=windows", msg="warpheap is for Linux")

    def cmake_args(self):
        return [
            self.define_from_variant("WARPHEAP_TOOL", "tool"),
            self.define("WARPHEAP_TESTS", False),
            self.define("WARPHEAP_EXAMPLES", False),
            self.define("WARPHEAP_BENCH", False),
        ]
