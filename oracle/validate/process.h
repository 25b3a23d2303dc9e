// Runs another program and takes what it prints.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sibyl {

// Waits for `arguments` (the program first, found in PATH) and returns its standard output; standard error passes
// through. An exit status other than 0 is an Error: 130 and death by SIGINT have code interrupted, all else bad_input.
// An interruption that this process outlives (below) is one of the other, too.
Result<std::string> run_process(const std::vector<std::string>& arguments);

// From here on SIGINT and SIGTERM do not end this process, which may have hours of results in hand. SIGTERM is handed on to what
// run_process waits for; Ctrl-C reaches that anyway.
void outlive_interruption();
bool was_interrupted();

// Splits a line into words at blanks; quotes ('…' or "…") keep blanks, as a shell does.
Result<std::vector<std::string>> split_words(const std::string& line);

}  // namespace sibyl
