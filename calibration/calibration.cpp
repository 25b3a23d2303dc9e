#include "calibration/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calibration/codec.h"
#include "base/files.h"
#include "calibration/shipped.h"

namespace sibyl {

Result<Calibration> load_calibration(const std::filesystem::path& path) {
  SIBYL_TRY(const std::string text, read_file(path));
  return calibration_codec::read(text, path.string());
}

Result<void> save_calibration(const Calibration& calibration, const std::filesystem::path& path) {
  return replace_file(path, calibration_codec::write(calibration));
}

std::vector<std::string> shipped_calibrations() { return shipped::names(shipped::Kind::calibration); }

Result<Calibration> shipped_calibration(const std::string& name) {
  const auto text = shipped::find(shipped::Kind::calibration, name);
  if (!text)
    return fail(fmt::format("no calibration called '{}' is shipped", name), {},
                fmt::format("there are {}", fmt::join(shipped_calibrations(), ", ")));
  return calibration_codec::read(*text, fmt::format("shipped:{}", name));
}

}  // namespace sibyl
