#include "calibration/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "calibration/codec.h"
#include "calibration/device_names.h"
#include "calibration/shipped.h"

namespace sibyl {
namespace {

Result<Calibration> read(std::string_view text, const std::string& file) {
  SIBYL_TRY(Calibration calibration, calibration_codec::read(text, file));
  for (std::size_t i = 0; i < calibration.donors.size(); ++i)
    if (!shipped::find(shipped::Kind::calibration, calibration.donors[i]))
      return fail(fmt::format("no calibration called '{}' is shipped", calibration.donors[i]),
                  fmt::format("{}: $.donors[{}]", file, i),
                  fmt::format("there are {}", fmt::join(shipped_calibrations(), ", ")));
  return calibration;
}

std::vector<KernelTable> tables_of(const std::vector<std::string>& names) {
  std::vector<KernelTable> tables;
  for (const std::string& name : names)
    if (auto donor = shipped_calibration(name))
      tables.emplace_back(std::move(donor->device), std::move(donor->kernels));
  return tables;
}

}  // namespace

Result<Calibration> load_calibration(const std::filesystem::path& path) {
  SIBYL_TRY(const std::string text, read_file(path));
  return read(text, path.string());
}

KernelTable kernel_table(Calibration c) {
  KernelTable::Donors donors;
  if (!c.donors.empty()) donors = [names = std::move(c.donors)] { return tables_of(names); };
  return {std::move(c.device), std::move(c.kernels), std::move(donors)};
}

Result<void> save_calibration(const Calibration& calibration, const std::filesystem::path& path) {
  return replace_file(path, calibration_codec::write(calibration));
}

std::vector<std::string> shipped_calibrations() { return shipped::names(shipped::Kind::calibration); }

Result<Calibration> shipped_calibration(const std::string& name) {
  const std::string own = shipped_device(name).value_or(name);
  const auto text = shipped::find(shipped::Kind::calibration, own);
  if (!text)
    return fail(fmt::format("no calibration called '{}' is shipped", name), {},
                fmt::format("there are {}", fmt::join(shipped_calibrations(), ", ")));
  return read(*text, fmt::format("shipped:{}", own));
}

}  // namespace sibyl
