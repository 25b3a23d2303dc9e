// Errors are values with a place.
//
// A function that can fail on bad input returns Result<T>: either the T or an Error that says what is wrong
// (`message`), where (`where`: file:line, a JSON path such as $.kernels[3].key, or an ONNX node's name) and what
// to do about it (`hint`, may be empty). Exceptions are for bugs in Sibyl, never for bad input.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sibyl {

// Each code is also the process's exit code (see exit_code()).
enum class ErrorCode {
  usage,              // the command line is wrong
  bad_input,          // a file or value the user gave cannot be used
  infeasible,         // does not fit in memory, or cannot be split so
  validation_failed,  // prediction and measurement disagree beyond the stated bound
  interrupted,        // Ctrl-C
};

struct Error {
  ErrorCode code = ErrorCode::bad_input;
  std::string message;
  std::string where;
  std::string hint;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

// `return fail("...")`: the short way to an Error of code bad_input.
inline Failure fail(std::string message, std::string where = {}, std::string hint = {}) {
  return Failure(Error{ErrorCode::bad_input, std::move(message), std::move(where), std::move(hint)});
}
inline Failure fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
  return Failure(Error{code, std::move(message), std::move(where), std::move(hint)});
}

// 2 usage, 3 bad input, 4 infeasible, 5 validation failed, 130 interrupted.
int exit_code(ErrorCode code);

// One line: "sibyl: WHERE: MESSAGE (HINT)", without trailing newline; absent parts are left out.
std::string to_string(const Error& error);

}  // namespace sibyl

// Propagates an Error: SIBYL_TRY(auto graph, import_onnx(path, options));
#define SIBYL_TRY_CONCAT_(a, b) a##b
#define SIBYL_TRY_NAME_(line) SIBYL_TRY_CONCAT_(sibyl_try_, line)
#define SIBYL_TRY(declaration, expression)                                          \
  auto SIBYL_TRY_NAME_(__LINE__) = (expression);                                    \
  if (!SIBYL_TRY_NAME_(__LINE__))                                                   \
    return ::sibyl::Failure(std::move(SIBYL_TRY_NAME_(__LINE__)).error());          \
  declaration = std::move(*SIBYL_TRY_NAME_(__LINE__))
// The same for Result<void>.
#define SIBYL_CHECK(expression)                                                     \
  do {                                                                              \
    auto sibyl_checked = (expression);                                              \
    if (!sibyl_checked) return ::sibyl::Failure(std::move(sibyl_checked).error());  \
  } while (false)
