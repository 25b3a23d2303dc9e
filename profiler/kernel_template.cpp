#include "profiler/kernel_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sibyl {
namespace {

// Stands for $0 while the key is parsed, $1 is one more, and so on: extents that no tensor has.
constexpr std::int64_t first_mark = 4'000'000'000'000'000'000;
constexpr std::size_t most_sizes = 32;

}  // namespace

Result<KernelTemplate> KernelTemplate::parse(std::string_view text) {
  std::string marked;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      marked += text[i++];
      continue;
    }
    std::size_t number = 0;
    const char* const begin = text.data() + i + 1;
    const auto [end, status] = std::from_chars(begin, text.data() + text.size(), number);
    if (status != std::errc{} || number >= most_sizes)
      return fail(fmt::format("'{}' is not a template of kernels: a $ needs a number below {}", text, most_sizes));
    marked += std::to_string(first_mark + static_cast<std::int64_t>(number));
    i = static_cast<std::size_t>(end - text.data());
  }

  KernelTemplate result;
  SIBYL_TRY(result.key_, parse_kernel_key(marked));
  for (const bool output : {false, true}) {
    const auto& shapes = output ? result.key_.signature.outputs : result.key_.signature.inputs;
    for (std::size_t s = 0; s < shapes.size(); ++s)
      for (std::size_t d = 0; d < shapes[s].size(); ++d)
        if (shapes[s][d] >= first_mark) {
          const auto size = static_cast<std::size_t>(shapes[s][d] - first_mark);
          result.slots_.push_back({output, s, d, size});
          result.size_count_ = std::max(result.size_count_, size + 1);
        }
  }
  return result;
}

KernelKey KernelTemplate::with(std::span<const std::int64_t> sizes) const {
  KernelKey key = key_;
  for (const Slot& slot : slots_)
    (slot.output ? key.signature.outputs : key.signature.inputs)[slot.shape][slot.dimension] = sizes[slot.size];
  return key;
}

}  // namespace sibyl
