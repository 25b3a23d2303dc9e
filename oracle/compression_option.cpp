// What --compress says, read and written.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "oracle/strategy.h"

namespace sibyl {
namespace {

using Kind = Compression::Kind;
constexpr std::array<std::string_view, 6> names = {"none", "fp16", "bf16", "1bit", "2bit", "topk"};

std::string_view to_string(Kind kind) { return names[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string compression_text(const Compression& compression) {
  const std::string name(to_string(compression.kind));
  return compression.kind == Kind::top_k ? fmt::format("{}:{}", name, compression.share) : name;
}

Result<Compression> parse_compression(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto known = std::ranges::find(names, text.substr(0, colon));
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::usage, fmt::format("'{}' {}", text, why), "--compress",
                "none, fp16, bf16, 1bit, 2bit, or topk:SHARE, as topk:0.01");
  };
  if (known == names.end()) return wrong("is no form that gradients travel in");
  Compression compression{static_cast<Kind>(known - names.begin()), 1};
  const bool shares = compression.kind == Kind::top_k;
  if (!shares && colon != text.size()) return wrong("has no share");
  if (!shares) return compression;
  const std::string_view digits = text.substr(std::min(colon + 1, text.size()));
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), compression.share);
  const bool whole = status == std::errc{} && end == digits.data() + digits.size();
  if (!whole || !(compression.share > 0 && compression.share <= 1))
    return wrong("needs the share of values that is sent, above 0 and at most 1");
  return compression;
}

}  // namespace sibyl
