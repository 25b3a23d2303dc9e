#include "oracle/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace sibyl {
namespace {

constexpr std::array<std::string_view, 5> precision_names = {"fp32", "tf32", "fp16", "bf16", "fp8"};

constexpr std::array<std::string_view, 2> framework_names = {"sibyl", "pytorch-ddp"};
constexpr std::array<std::string_view, 2> batch_norm_names = {"replica", "synchronised"};
constexpr std::array<std::string_view, 4> context_exchange_names = {"automatic", "heads", "keys", "ring"};

std::string choices(auto&& names) {
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

template <class Enum>
Result<Enum> parse_choice(std::string_view text, auto&& names, std::string_view what) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return fail(ErrorCode::usage, fmt::format("'{}' is not {}", text, what), {},
              fmt::format("one of {}", choices(names)));
}

}  // namespace

DType compute_type(Precision precision) {
  switch (precision) {
    case Precision::fp32: return DType::f32;
    case Precision::tf32: return DType::tf32;
    case Precision::fp16: return DType::f16;
    case Precision::bf16:
    case Precision::fp8: return DType::bf16;
  }
  return DType::f32;
}

std::string_view to_string(Precision precision) { return precision_names[static_cast<std::size_t>(precision)]; }
Result<Precision> parse_precision(std::string_view text) {
  return parse_choice<Precision>(text, precision_names, "a precision");
}

std::string_view to_string(Framework framework) { return framework_names[static_cast<std::size_t>(framework)]; }
Result<Framework> parse_framework(std::string_view text) {
  return parse_choice<Framework>(text, framework_names, "a framework");
}

std::string_view to_string(BatchNorm batch_norm) { return batch_norm_names[static_cast<std::size_t>(batch_norm)]; }
Result<BatchNorm> parse_batch_norm(std::string_view text) {
  return parse_choice<BatchNorm>(text, batch_norm_names, "a way to take batch-norm's statistics");
}

std::string_view to_string(ContextExchange exchange) {
  return context_exchange_names[static_cast<std::size_t>(exchange)];
}
Result<ContextExchange> parse_context_exchange(std::string_view text) {
  return parse_choice<ContextExchange>(text, context_exchange_names, "what ranks of context= exchange");
}

std::string_view to_string(OptimizerKind kind) { return enum_names(kind)[static_cast<std::size_t>(kind)]; }
Result<OptimizerKind> parse_optimizer(std::string_view text) {
  return parse_choice<OptimizerKind>(text, enum_names(OptimizerKind{}), "an optimizer");
}

namespace {

// What --recompute may name: every operation, and unary ones by what they do.
std::vector<std::string_view> recomputable_kinds() {
  std::vector<std::string_view> names = operation_names();
  for (const std::string_view name : enum_names(UnaryKind{})) names.push_back(name);
  return names;
}

// N of "every:N", where `text` begins with that word.
std::optional<int> count_behind(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return {};
  text.remove_prefix(word.size());
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = status == std::errc{} && end == text.data() + text.size();
  return whole && value > 0 ? value : 0;
}

Result<void> parse_recomputed_kinds(std::string_view text, Strategy& strategy) {
  const std::vector<std::string_view> known = recomputable_kinds();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view kind = text.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), kind) == known.end())
      return fail(ErrorCode::usage, fmt::format("'{}' is not a way to recompute", kind), "--recompute",
                  fmt::format("none, selective, full, every:K, groups:K, or kinds of operations: {}", choices(known)));
    strategy.recompute_kinds.emplace_back(kind);
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::string recompute_text(const Strategy& strategy) {
  switch (strategy.recompute) {
    case Recompute::none: return "none";
    case Recompute::selective: return "selective";
    case Recompute::full:
      if (strategy.recompute_every > 1) return fmt::format("every:{}", strategy.recompute_every);
      if (strategy.recompute_together > 1) return fmt::format("groups:{}", strategy.recompute_together);
      return "full";
    case Recompute::operations: return fmt::format("{}", fmt::join(strategy.recompute_kinds, ","));
  }
  return {};
}

Result<void> parse_recompute(std::string_view text, Strategy& strategy) {
  strategy.recompute_every = strategy.recompute_together = 1;
  strategy.recompute_kinds.clear();
  const auto every = count_behind(text, "every:"), together = count_behind(text, "groups:");
  if (every == 0 || together == 0)
    return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number of blocks", text), "--recompute", "every:2, groups:2");
  if (every || together || text == "full") {
    strategy.recompute = Recompute::full;
    strategy.recompute_every = every.value_or(1);
    strategy.recompute_together = together.value_or(1);
    return {};
  }
  strategy.recompute = text == "none" ? Recompute::none : text == "selective" ? Recompute::selective : Recompute::operations;
  return strategy.recompute == Recompute::operations ? parse_recomputed_kinds(text, strategy) : Result<void>{};
}

std::string zero_text(const Strategy& strategy) {
  return strategy.zero_ranks > 0 ? fmt::format("{}:{}", strategy.zero, strategy.zero_ranks)
                                 : fmt::format("{}", strategy.zero);
}

Result<void> parse_zero(std::string_view text, Strategy& strategy) {
  const auto number = [](std::string_view digits, int least, int most) -> std::optional<int> {
    int value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = status == std::errc{} && end == digits.data() + digits.size();
    return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
  };
  const std::size_t colon = text.find(':');
  const bool divided = colon != std::string_view::npos;
  const auto zero = number(text.substr(0, colon), divided ? 1 : 0, 3);
  const auto ranks = divided ? number(text.substr(colon + 1), 1, 1 << 20) : std::optional(0);
  if (!zero || !ranks)
    return fail(ErrorCode::usage, fmt::format("'{}' does not say what replicas share", text), "--zero",
                "0 to 3, or 1:N to 3:N with N replicas that share it");
  strategy.zero = *zero;
  strategy.zero_ranks = *ranks;
  return {};
}

namespace {

constexpr std::array<std::string_view, 4> schedule_names = {"gpipe", "1f1b", "interleaved", "zero-bubble"};

}  // namespace

std::string schedule_text(const Strategy& strategy) {
  const std::string_view name = schedule_names[static_cast<std::size_t>(strategy.schedule)];
  if (strategy.schedule != PipelineSchedule::interleaved) return std::string(name);
  return fmt::format("{}:{}", name, strategy.chunks);
}

Result<void> parse_schedule(std::string_view text, Strategy& strategy) {
  const std::size_t colon = text.find(':');
  const auto known = std::find(schedule_names.begin(), schedule_names.end(), text.substr(0, colon));
  const bool interleaved = known != schedule_names.end() && *known == "interleaved";
  if (known == schedule_names.end() || interleaved != (colon != std::string_view::npos))
    return fail(ErrorCode::usage, fmt::format("'{}' is not a schedule", text), "--schedule",
                "gpipe, 1f1b, interleaved:V with V stages on each device, or zero-bubble");
  int chunks = 1;
  if (interleaved) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), chunks);
    if (status != std::errc{} || end != digits.data() + digits.size() || chunks < 2 || chunks > 4096)
      return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number of stages, at least 2", text),
                  "--schedule", "interleaved:2");
  }
  strategy.schedule = static_cast<PipelineSchedule>(known - schedule_names.begin());
  strategy.chunks = chunks;
  return {};
}

}  // namespace sibyl
