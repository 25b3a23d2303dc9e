#include "oracle/cli/external.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

constexpr const char* cudnn_calibrator = "sibyl-calibrate-cudnn";
constexpr const char* desktop = "sibyl-gui";

// Where a program is not there.
const char* what_to_install(const std::string& program) {
  if (program == cudnn_calibrator) return "it is built where nvcc and cuDNN are found: docs/gpu.md";
  if (program == desktop)
    return "it is built where Qt 6 and QCustomPlot are found: tools/setup.sh all installs them, then build again";
  return "it is built where Open MPI and libtorch are found: tools/setup.sh installs them, then build again";
}

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::filesystem::path own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

std::optional<std::filesystem::path> find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::filesystem::path candidate = std::filesystem::path(rest.substr(0, colon)) / name;
    if (candidate.is_absolute() && is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
  const std::filesystem::path here = own_folder();
  for (const std::filesystem::path& candidate : {here / name, here.parent_path() / "libexec" / "sibyl" / name})
    if (is_program(candidate)) return candidate;
  return find_on_path(name);
}

std::string calibrator_for(const std::vector<std::string>& words) {
  constexpr std::string_view option = "--backend", joined = "--backend=";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool apart = words[i] == option && i + 1 < words.size();
    const std::string backend = apart                          ? words[i + 1]
                                : words[i].starts_with(joined) ? words[i].substr(joined.size())
                                                               : "";
    if (backend == "cudnn") return cudnn_calibrator;
  }
  return "sibyl-calibrate";
}

Error replace_process(const std::string& program, const std::vector<std::string>& words) {
  const auto found = find_program(program);
  if (!found)
    return {ErrorCode::bad_input,
            fmt::format("{} is not installed with this sibyl", program),
            {},
            what_to_install(program)};
  std::vector<std::string> all = {found->string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> raw;
  for (std::string& word : all) raw.push_back(word.data());
  raw.push_back(nullptr);
  execv(raw[0], raw.data());
  return {ErrorCode::bad_input, fmt::format("cannot be started: {}", std::strerror(errno)), found->string(), {}};
}

Verb calibrate_verb() {
  Command c;
  c.name = "calibrate";
  c.program = "sibyl calibrate";
  c.summary = "measure this machine: kernels, network, storage (runs sibyl-calibrate)";
  return {std::move(c), nullptr, "sibyl-calibrate"};
}

Verb train_verb() {
  Command c;
  c.name = "train";
  c.program = "sibyl train";
  c.summary = "train for real and measure every step (runs sibyl-train)";
  return {std::move(c), nullptr, "sibyl-train"};
}

Verb gui_verb() {
  Command c;
  c.name = "gui";
  c.program = "sibyl gui";
  c.summary = "ask what if in a window: the answer moves while the slider does (runs sibyl-gui)";
  return {std::move(c), nullptr, desktop};
}

}  // namespace sibyl::cli
