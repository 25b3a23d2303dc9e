// The axes of parallelism: how users say how far each is taken, and in which order ranks lie along them. A further axis
// is a row here, beside its enumerator and its field (strategy.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "oracle/axes.h"

namespace sibyl {
namespace {

struct AxisRow {
  MeshAxis axis;
  std::string_view name;
  int Strategy::* degree;
  bool of_images = false;  // said together, as spatial=DxHxW
};

// From the one along which neighbouring ranks lie, where users do not say otherwise.
constexpr std::array axis_rows = {AxisRow{MeshAxis::tensor, "tensor", &Strategy::tensor},
                                  AxisRow{MeshAxis::filter, "filter", &Strategy::filter},
                                  AxisRow{MeshAxis::channel, "channel", &Strategy::channel},
                                  AxisRow{MeshAxis::width, "width", &Strategy::width, true},
                                  AxisRow{MeshAxis::height, "height", &Strategy::height, true},
                                  AxisRow{MeshAxis::depth, "depth", &Strategy::depth, true},
                                  AxisRow{MeshAxis::context, "context", &Strategy::context},
                                  AxisRow{MeshAxis::expert, "expert", &Strategy::expert},
                                  AxisRow{MeshAxis::data, "data", &Strategy::data},
                                  AxisRow{MeshAxis::pipeline, "pipeline", &Strategy::pipeline}};

const AxisRow& row_of(MeshAxis axis) { return *std::ranges::find(axis_rows, axis, &AxisRow::axis); }

// What users write: each axis, tensor's other name, and one name for those of images.
std::string axis_choices(std::string_view degree, std::string_view extents) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, value);
  };
  for (const AxisRow& row : axis_rows) {
    if (!row.of_images) add(row.name, degree);
    if (row.axis == MeshAxis::tensor) add("sequence", degree);
    if (row.axis == MeshAxis::width) add("spatial", extents);
  }
  return text;
}

Result<int> parse_degree(std::string_view text, std::string_view entry) {
  int degree = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), degree);
  if (status == std::errc{} && end == text.data() + text.size() && degree >= 1) return degree;
  return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number of at least 1", entry), "--parallel", "data=8");
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

Result<void> parse_axis(std::string_view name, std::string_view text, std::string_view entry, Strategy& strategy) {
  if (name == "spatial") return parse_spatial(text, entry, strategy);
  const std::string_view of_ranks = name == "sequence" ? "tensor" : name;
  const auto row = std::ranges::find(axis_rows, of_ranks, &AxisRow::name);
  if (row == axis_rows.end() || row->of_images)
    return fail(ErrorCode::usage, fmt::format("'{}' is not an axis of parallelism", name), "--parallel",
                axis_choices("=N", "=HxW"));
  SIBYL_TRY(const int degree, parse_degree(text, entry));
  int& known = strategy.*row->degree;
  const bool again = name == "sequence" || (name == "tensor" && strategy.sequence);
  if (again && known > 1 && known != degree)
    return fail(ErrorCode::usage, "the sequence is split over the ranks of the tensor axis: their degrees are one",
                "--parallel", "tensor=4,sequence=4");
  known = degree;
  if (name == "sequence") strategy.sequence = degree > 1;
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
  for (const AxisRow& row : axis_rows) {
    const int degree = strategy.*row.degree;
    if (row.axis == MeshAxis::width && strategy.depth * strategy.height * strategy.width > 1)
      text += strategy.depth > 1
                  ? fmt::format(",spatial={}x{}x{}", strategy.depth, strategy.height, strategy.width)
                  : fmt::format(",spatial={}x{}", strategy.height, strategy.width);
    if (row.of_images || row.axis == MeshAxis::data || degree == 1) continue;
    text += fmt::format(",{}={}", row.name, degree);
    if (row.axis == MeshAxis::tensor && strategy.sequence) text += fmt::format(",sequence={}", degree);
  }
  return text;
}

std::string_view to_string(MeshAxis axis) { return row_of(axis).name; }

int& degree_of(Strategy& strategy, MeshAxis axis) { return strategy.*row_of(axis).degree; }

int Strategy::degree(MeshAxis axis) const { return this->*row_of(axis).degree; }

int Strategy::devices_per_replica() const {
  int devices = 1;
  for (const AxisRow& row : axis_rows)
    if (row.axis != MeshAxis::data) devices *= this->*row.degree;
  return devices;
}

std::vector<MeshAxis> rank_order(const Strategy& strategy) {
  std::vector<MeshAxis> order = strategy.order;
  for (const AxisRow& row : axis_rows)
    if (std::ranges::find(order, row.axis) == order.end()) order.push_back(row.axis);
  return order;
}

namespace {

std::vector<MeshAxis> axes_named(std::string_view name) {
  std::vector<MeshAxis> axes;
  for (const AxisRow& row : axis_rows)
    if (row.name == (name == "sequence" ? "tensor" : name) || (row.of_images && name == "spatial"))
      axes.push_back(row.axis);
  return axes;
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
                  axis_choices("", ""));
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

}  // namespace sibyl
