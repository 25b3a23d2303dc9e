#include "base/result.h"

namespace sibyl {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage: return 2;
    case ErrorCode::bad_input: return 3;
    case ErrorCode::infeasible: return 4;
    case ErrorCode::validation_failed: return 5;
    case ErrorCode::interrupted: return 130;
  }
  return 3;
}

std::string to_string(const Error& error) {
  std::string line = "sibyl: ";
  if (!error.where.empty()) line += error.where + ": ";
  line += error.message;
  if (!error.hint.empty()) line += " (" + error.hint + ")";
  return line;
}

}  // namespace sibyl
