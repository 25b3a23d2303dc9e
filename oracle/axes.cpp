// The axes of parallelism (axis_list.h): how users say how far each is taken, and in which order ranks lie along them.
#include "oracle/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "netmodel/network.h"

namespace sibyl {
namespace {

struct AxisRow {
  MeshAxis axis;
  std::string_view name;
  int Strategy::* degree;
  enum class Shares { work, images, samples, stages } shares = Shares::work;
};
using Shares = AxisRow::Shares;

constexpr std::array axis_rows = {
#define SIBYL_ROW(name, shares, ...) AxisRow{MeshAxis::name, #name, &Strategy::name, Shares::shares},
    SIBYL_AXES(SIBYL_ROW)
#undef SIBYL_ROW
};
constexpr std::string_view images_word = "spatial", sequence_word = "sequence";

const AxisRow& row_of(MeshAxis axis) { return *std::ranges::find(axis_rows, axis, &AxisRow::axis); }
bool of_images(const AxisRow& row) { return row.shares == Shares::images; }

template <class Counts>
std::vector<MeshAxis> axes_that(const Counts& counts) {
  std::vector<MeshAxis> axes;
  for (const AxisRow& row : axis_rows)
    if (counts(row)) axes.push_back(row.axis);
  return axes;
}

}  // namespace

std::vector<std::string_view> axis_words() {
  std::vector<std::string_view> words;
  for (const AxisRow& row : axis_rows) {
    if (!of_images(row)) words.push_back(row.name);
    if (row.axis == MeshAxis::tensor) words.push_back(sequence_word);
    if (row.axis == MeshAxis::width) words.push_back(images_word);
  }
  return words;
}

std::string axis_choices(std::string_view degree, std::string_view extents) {
  std::string text;
  for (const std::string_view word : axis_words())
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", word, word == images_word ? extents : degree);
  return text;
}

std::vector<MeshAxis> axes_said(std::string_view word) {
  if (word == sequence_word) return {MeshAxis::tensor};
  return axes_that([&](const AxisRow& row) { return of_images(row) ? word == images_word : word == row.name; });
}

std::vector<MeshAxis> axes_of_a_program() {
  return axes_that([](const AxisRow& row) { return row.axis != MeshAxis::data && row.shares != Shares::stages; });
}

std::vector<MeshAxis> axes_within_samples() {
  return axes_that([](const AxisRow& row) { return row.shares == Shares::work || of_images(row); });
}

bool is_of_images(MeshAxis axis) { return of_images(row_of(axis)); }

bool has_own_samples(MeshAxis axis) { return row_of(axis).shares == Shares::samples; }

int Strategy::samplers() const {
  int ranks = 1;
  for (const AxisRow& row : axis_rows)
    if (row.shares == Shares::samples && row.axis != MeshAxis::data) ranks *= this->*row.degree;
  return ranks;
}

namespace {

Result<int> parse_degree(std::string_view text, std::string_view entry) {
  int degree = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), degree);
  if (status == std::errc{} && end == text.data() + text.size() && degree >= 1 && degree <= most_devices) return degree;
  const std::string_view name = entry.substr(0, entry.find('='));
  return fail(ErrorCode::usage, fmt::format("'{}' needs a whole number from 1 to {}", entry, most_devices),
              "--parallel", name == images_word ? "spatial=2x2" : fmt::format("{}=8", name));
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

// `said`: the axes before it.
Result<void> parse_axis(std::string_view name, std::string_view text, std::string_view entry,
                        const std::vector<std::string_view>& said, Strategy& strategy) {
  if (name == images_word) return parse_spatial(text, entry, strategy);
  const std::string_view of_ranks = name == sequence_word ? "tensor" : name;
  const auto row = std::ranges::find(axis_rows, of_ranks, &AxisRow::name);
  if (row == axis_rows.end() || of_images(*row))
    return fail(ErrorCode::usage, fmt::format("'{}' is not an axis of parallelism", name), "--parallel",
                axis_choices("=N", "=HxW or DxHxW"));
  SIBYL_TRY(const int degree, parse_degree(text, entry));
  int& known = strategy.*row->degree;
  const std::string_view twin = name == sequence_word ? "tensor" : name == "tensor" ? sequence_word : "";
  if (std::ranges::count(said, twin) > 0 && known != degree)
    return fail(ErrorCode::usage, "the sequence is split over the ranks of the tensor axis: their degrees are one",
                "--parallel", "tensor=4,sequence=4");
  known = degree;
  if (name == sequence_word) strategy.sequence = degree > 1;
  return {};
}

}  // namespace

Result<void> parse_parallel(std::string_view text, Strategy& strategy) {
  std::vector<std::string_view> said;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t equals = entry.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
    const std::string_view name = entry.substr(0, equals);
    SIBYL_CHECK(parse_axis(name, value, entry, said, strategy));
    if (std::ranges::count(said, name) > 0)
      return fail(ErrorCode::usage, fmt::format("'{}' is said twice", name), "--parallel", {});
    said.push_back(name);
  }
  double devices = 1;  // as many as no integer holds
  for (const AxisRow& row : axis_rows) devices *= strategy.*row.degree;
  if (devices > most_devices)
    return fail(ErrorCode::usage, fmt::format("its degrees multiply to {:.0f} devices", devices), "--parallel",
                fmt::format("at most {} devices", most_devices));
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
    if (of_images(row) || row.axis == MeshAxis::data || degree == 1) continue;
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

// As order_text() names them, too: those of images one by one.
std::vector<MeshAxis> axes_in_order(std::string_view name) {
  std::vector<MeshAxis> axes = axes_said(name);
  return axes.empty() ? axes_that([&](const AxisRow& row) { return row.name == name; }) : axes;
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
    const std::vector<MeshAxis> named = axes_in_order(name);
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
