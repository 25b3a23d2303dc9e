// Verbs that are programs of their own, because they need MPI and libtorch, or Qt: `sibyl train …` runs `sibyl-train …`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sibyl::cli {

// Beside this program, else in ../libexec/sibyl, else on PATH.
std::optional<std::filesystem::path> find_program(const std::string& name);
// Any program on PATH.
std::optional<std::filesystem::path> find_on_path(const std::string& name);

// The program that these words of `sibyl calibrate` ask for: sibyl-calibrate, or the one of their --backend.
std::string calibrator_for(const std::vector<std::string>& words);

// Becomes that program. Returns only where it cannot, with what to install.
Error replace_process(const std::string& program, const std::vector<std::string>& words);

}  // namespace sibyl::cli
