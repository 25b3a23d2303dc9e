#include "oracle/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

constexpr std::array<std::string_view, 4> precision_names = {"fp32", "tf32", "fp16", "bf16"};

constexpr std::array<std::string_view, 3> recompute_names = {"none", "selective", "full"};

constexpr std::array<std::string_view, 2> framework_names = {"sibyl", "pytorch-ddp"};
constexpr std::array<std::string_view, 2> batch_norm_names = {"replica", "synchronised"};

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
    case Precision::bf16: return DType::bf16;
  }
  return DType::f32;
}

std::string_view to_string(Precision precision) { return precision_names[static_cast<std::size_t>(precision)]; }
Result<Precision> parse_precision(std::string_view text) {
  return parse_choice<Precision>(text, precision_names, "a precision");
}

std::string_view to_string(Recompute recompute) { return recompute_names[static_cast<std::size_t>(recompute)]; }
Result<Recompute> parse_recompute(std::string_view text) {
  return parse_choice<Recompute>(text, recompute_names, "a way to recompute");
}

std::string_view to_string(Framework framework) { return framework_names[static_cast<std::size_t>(framework)]; }
Result<Framework> parse_framework(std::string_view text) {
  return parse_choice<Framework>(text, framework_names, "a framework");
}

std::string_view to_string(BatchNorm batch_norm) { return batch_norm_names[static_cast<std::size_t>(batch_norm)]; }
Result<BatchNorm> parse_batch_norm(std::string_view text) {
  return parse_choice<BatchNorm>(text, batch_norm_names, "a way to take batch-norm's statistics");
}

std::string_view to_string(OptimizerKind kind) { return enum_names(kind)[static_cast<std::size_t>(kind)]; }
Result<OptimizerKind> parse_optimizer(std::string_view text) {
  return parse_choice<OptimizerKind>(text, enum_names(OptimizerKind{}), "an optimizer");
}

namespace {

constexpr std::string_view example = "data=8";

Result<int> parse_degree(std::string_view text, std::string_view entry) {
  int degree = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), degree);
  if (status == std::errc{} && end == text.data() + text.size() && degree >= 1) return degree;
  return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number of at least 1", entry), "--parallel",
              std::string(example));
}

// HxW or DxHxW.
Result<void> parse_spatial(std::string_view text, std::string_view entry, Strategy& strategy) {
  std::vector<int> extents;
  while (true) {
    const std::size_t times = text.find('x');
    SIBYL_TRY(const int extent, parse_degree(text.substr(0, times), entry));
    extents.push_back(extent);
    if (times == std::string_view::npos) break;
    text.remove_prefix(times + 1);
  }
  if (extents.size() != 2 && extents.size() != 3)
    return fail(ErrorCode::usage, fmt::format("'{}' needs two extents, or three", entry), "--parallel", "spatial=2x2");
  strategy.depth = extents.size() == 3 ? extents.front() : 1;
  strategy.height = extents[extents.size() - 2];
  strategy.width = extents.back();
  return {};
}

Result<void> parse_axis(std::string_view axis, std::string_view text, std::string_view entry, Strategy& strategy) {
  if (axis == "spatial") return parse_spatial(text, entry, strategy);
  const std::array<std::pair<std::string_view, int*>, 6> axes = {{{"data", &strategy.data},
                                                                  {"pipeline", &strategy.pipeline},
                                                                  {"tensor", &strategy.tensor},
                                                                  {"filter", &strategy.filter},
                                                                  {"channel", &strategy.channel},
                                                                  {"sequence", &strategy.tensor}}};
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const auto& known) { return known.first == axis; });
  if (found == axes.end())
    return fail(ErrorCode::usage, fmt::format("'{}' is not an axis of parallelism", axis), "--parallel",
                "data=N, tensor=N, sequence=N, filter=N, channel=N, spatial=HxW, pipeline=N");
  SIBYL_TRY(const int degree, parse_degree(text, entry));
  const bool again = axis == "sequence" || (axis == "tensor" && strategy.sequence);
  if (again && *found->second > 1 && *found->second != degree)
    return fail(ErrorCode::usage, "the sequence is split over the ranks of the tensor axis: their degrees are one",
                "--parallel", "tensor=4,sequence=4");
  *found->second = degree;
  if (axis == "sequence") strategy.sequence = degree > 1;
  return {};
}

}  // namespace

Result<void> parse_parallel(std::string_view text, Strategy& strategy) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t equals = entry.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
    SIBYL_CHECK(parse_axis(entry.substr(0, equals), value, entry, strategy));
  }
  return {};
}

std::string parallel_text(const Strategy& strategy) {
  std::string text = fmt::format("data={}", strategy.data);
  const auto add = [&](std::string_view axis, int degree) {
    if (degree > 1) text += fmt::format(",{}={}", axis, degree);
  };
  add("tensor", strategy.tensor);
  if (strategy.sequence) add("sequence", strategy.tensor);
  add("filter", strategy.filter);
  add("channel", strategy.channel);
  if (strategy.depth > 1)
    text += fmt::format(",spatial={}x{}x{}", strategy.depth, strategy.height, strategy.width);
  else if (strategy.height * strategy.width > 1)
    text += fmt::format(",spatial={}x{}", strategy.height, strategy.width);
  add("pipeline", strategy.pipeline);
  return text;
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

std::string_view to_string(MeshAxis axis) {
  constexpr std::array<std::string_view, 8> names = {"tensor", "filter", "channel", "depth",
                                                     "height", "width",  "data",    "pipeline"};
  return names[static_cast<std::size_t>(axis)];
}

std::vector<MeshAxis> rank_order(const Strategy& strategy) {
  std::vector<MeshAxis> order = strategy.order;
  for (const MeshAxis axis : {MeshAxis::tensor, MeshAxis::filter, MeshAxis::channel, MeshAxis::width, MeshAxis::height,
                              MeshAxis::depth, MeshAxis::data, MeshAxis::pipeline})
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  return order;
}

namespace {

constexpr MeshAxis all_axes[] = {MeshAxis::tensor, MeshAxis::filter, MeshAxis::channel, MeshAxis::depth,
                                 MeshAxis::height, MeshAxis::width,  MeshAxis::data,    MeshAxis::pipeline};

std::vector<MeshAxis> axes_named(std::string_view name) {
  if (name == "spatial") return {MeshAxis::width, MeshAxis::height, MeshAxis::depth};
  if (name == "sequence") return {MeshAxis::tensor};
  for (const MeshAxis axis : all_axes)
    if (to_string(axis) == name) return {axis};
  return {};
}

std::vector<MeshAxis> split_axes(const Strategy& strategy) {
  std::vector<MeshAxis> axes = rank_order(strategy);
  std::erase_if(axes, [&](MeshAxis axis) { return strategy.degree(axis) == 1; });
  return axes;
}

}  // namespace

Result<void> parse_order(std::string_view text, Strategy& strategy) {
  std::vector<MeshAxis> order;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::vector<MeshAxis> named = axes_named(name);
    if (named.empty())
      return fail(ErrorCode::usage, fmt::format("'{}' is not an axis of parallelism", name), "--order",
                  "tensor, sequence, filter, channel, spatial, data, pipeline");
    for (const MeshAxis axis : named) {
      if (std::find(order.begin(), order.end(), axis) != order.end())
        return fail(ErrorCode::usage, fmt::format("'{}' has its place already", name), "--order", "name each axis once");
      order.push_back(axis);
    }
  }
  strategy.order = std::move(order);
  return {};
}

std::string order_text(const Strategy& strategy) {
  Strategy usual = strategy;
  usual.order.clear();
  const std::vector<MeshAxis> axes = split_axes(strategy);
  if (axes == split_axes(usual)) return "";
  std::string text;
  for (const MeshAxis axis : axes) text += fmt::format("{}{}", text.empty() ? "" : ",", to_string(axis));
  return text;
}

int Strategy::degree(MeshAxis axis) const {
  switch (axis) {
    case MeshAxis::tensor: return tensor;
    case MeshAxis::filter: return filter;
    case MeshAxis::channel: return channel;
    case MeshAxis::depth: return depth;
    case MeshAxis::height: return height;
    case MeshAxis::width: return width;
    case MeshAxis::data: return data;
    case MeshAxis::pipeline: return pipeline;
  }
  return 1;
}

}  // namespace sibyl
