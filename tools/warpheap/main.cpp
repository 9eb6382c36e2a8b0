#include "command_line.hpp"

int main(int count, char** arguments) { return warpheap::tool::run(count, arguments); }
