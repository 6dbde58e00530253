// Where the tests find the source tree and the program they run.
#pragma once

#include <string>

const std::string& source_folder();
const std::string& program_folder();
