// The verbs of `sibyl`. To add one: its file with a function that returns a Verb, and one line in all_verbs().
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "oracle/cli/arguments.h"

namespace sibyl::cli {

struct Verb {
  Command command;
  // Gives the exit code, 0 or that of an answer which is not good news (4: does not fit); an Error is a failure.
  Result<int> (*run)(const Arguments& arguments) = nullptr;
  // Instead of run: the separate program that gets the words as they are.
  std::string program = {};
};

Verb inspect_verb();
Verb predict_verb();
Verb scale_verb();
Verb search_verb();
Verb whatif_verb();
Verb compare_verb();
Verb memory_verb();
Verb trace_verb();
Verb export_verb();
Verb zoo_verb();
Verb clusters_verb();
Verb import_verb();
Verb kernels_verb();
Verb collectives_verb();
Verb explain_verb();
Verb doctor_verb();
Verb calibrate_verb();
Verb train_verb();
Verb validate_verb();
Verb gui_verb();

// In the order that help shows them.
const std::vector<Verb>& all_verbs();

// "sibyl --help".
std::string general_help();
// For installation: a completion script for bash, and the manual page sibyl(1).
std::string bash_completion();
std::string manual_page();

}  // namespace sibyl::cli
