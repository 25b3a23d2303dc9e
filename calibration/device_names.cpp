#include "calibration/device_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "calibration/shipped.h"

namespace sibyl {
namespace {

// Other names, as `plain` leaves them, and the shipped calibration that they mean.
struct Alias {
  std::string_view name, calibration;
};
constexpr auto aliases = std::to_array<Alias>({
    {"a100pcie40", "a100-pcie-40gb"},
    {"a100pcie80", "a100-pcie-80gb"},
    {"a10080gbpcie", "a100-pcie-80gb"},
    {"a100sxm40", "a100-sxm-40gb"},
    {"a100sxm80", "a100-sxm-80gb"},
    {"a100sxm440gb", "a100-sxm-40gb"},
    {"a100sxm480gb", "a100-sxm-80gb"},
    {"b200", "b200-sxm"},
    {"b200sxm180gb", "b200-sxm"},
    {"gk210", "k80"},
    {"h100pcie", "h100-pcie-80gb"},
    {"h100sxm5", "h100-sxm"},
    {"h100sxm80gb", "h100-sxm"},
    {"h100sxm580gb", "h100-sxm"},
    {"h10080gbhbm3", "h100-sxm"},
    {"h200", "h200-sxm"},
    {"h200sxm141gb", "h200-sxm"},
    {"a1024gb", "a10"},
    {"a10g24gb", "a10g"},
    {"a800sxm", "a800-sxm-80gb"},
    {"h800", "h800-sxm"},
    {"h800sxm80gb", "h800-sxm"},
    {"h2096gb", "h20"},
    {"h100nvl94gb", "h100-nvl"},
    {"gh200", "gh200-96gb"},
    {"gh200480gb", "gh200-96gb"},
    {"b300", "b300-sxm"},
    {"l424gb", "l4"},
    {"l40s48gb", "l40s"},
    {"t416gb", "t4"},
    {"p48gb", "p4"},
    {"m4012gb", "m40"},
    {"p100pcie", "p100-pcie-16gb"},
    {"p100sxm2", "p100-sxm2-16gb"},
    {"a6000", "rtx-a6000"},
    {"3090", "rtx-3090"},
    {"4090", "rtx-4090"},
    {"5090", "rtx-5090"},
    {"rtxpro6000blackwell", "rtx-pro-6000"},
    {"2080ti", "rtx-2080-ti"},
    {"1080ti", "gtx-1080-ti"},
    {"rtx6000adageneration", "rtx-6000-ada"},
    {"6000ada", "rtx-6000-ada"},
    {"rtx8000", "quadro-rtx-8000"},
    {"titanx", "titan-x-maxwell"},
    {"v100sxm3", "v100-sxm3-32gb"},
    {"v100s", "v100s-pcie-32gb"},
    {"mi2501gcd", "mi250"},
    {"mi250x1gcd", "mi250x"},
    {"7250", "knl-7250"},
    {"knl", "knl-7250"},
});

constexpr std::array<std::string_view, 10> vendors = {"nvidia", "amd",      "intel",   "tesla", "geforce",
                                                      "radeon", "instinct", "xeonphi", "gpu",   "tensorcore"};

// Lower-case letters and digits; no vendors.
std::string plain(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  for (const std::string_view vendor : vendors)
    if (const auto at = letters.find(vendor); at != std::string::npos) letters.erase(at, vendor.size());
  return letters;
}

std::optional<std::string> find(const std::string& wanted) {
  for (const std::string& name : shipped::names(shipped::Kind::calibration))
    if (plain(name) == wanted) return name;
  const auto found = std::ranges::find(aliases, wanted, &Alias::name);
  if (found == aliases.end()) return std::nullopt;
  return std::string(found->calibration);
}

}  // namespace

std::optional<std::string> shipped_device(std::string_view text) {
  const auto whole = find(plain(text));
  return whole ? whole : find(plain(text.substr(0, text.find('('))));
}

}  // namespace sibyl
