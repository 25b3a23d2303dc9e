// Runs another program and takes what it prints.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sibyl {

// Waits for `arguments` (the program first, found in PATH) and returns its standard output; standard error passes
// through. An exit status other than 0 is an Error: 130 and death by SIGINT have code interrupted, all else bad_input.
Result<std::string> run_process(const std::vector<std::string>& arguments);

// Splits a line into words at blanks; quotes ('…' or "…") keep blanks, as a shell does.
Result<std::vector<std::string>> split_words(const std::string& line);

}  // namespace sibyl
