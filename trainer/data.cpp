#include "trainer/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trainer/random.h"

namespace sibyl::trainer {
namespace {

bool is_loss(const Attributes& attributes) {
  return std::holds_alternative<CrossEntropy>(attributes) || std::holds_alternative<MeanSquaredError>(attributes);
}

// The loss's second operand, or what it is another form of: labels are often flattened or cast first. Invalid where the
// loss has none.
TensorId labels_of(const Graph& graph) {
  const Operation& loss = graph[graph.producer(graph.loss)];
  if (!is_loss(loss.attributes) || loss.inputs.size() < 2) return {};
  TensorId labels = loss.inputs[1];
  while (labels.valid() && graph.producer(labels).valid()) {
    const Operation& made_by = graph[graph.producer(labels)];
    const bool form =
        std::holds_alternative<Reshape>(made_by.attributes) || std::holds_alternative<Cast>(made_by.attributes);
    if (!form) break;
    labels = made_by.inputs.front();
  }
  return labels;
}

// Calls write(typed pointer) for the tensor's element type; false where there is no such input.
bool with_elements(at::Tensor& tensor, auto&& write) {
  switch (tensor.scalar_type()) {
    case at::kFloat: write(tensor.data_ptr<float>()); return true;
    case at::kDouble: write(tensor.data_ptr<double>()); return true;
    case at::kLong: write(tensor.data_ptr<std::int64_t>()); return true;
    case at::kInt: write(tensor.data_ptr<std::int32_t>()); return true;
    case at::kByte: write(tensor.data_ptr<std::uint8_t>()); return true;
    case at::kBool: write(tensor.data_ptr<bool>()); return true;
    default: return false;
  }
}

template <class T>
constexpr bool is_real = std::is_floating_point_v<T>;

}  // namespace

Result<Data> Data::describe(Replica& replica, std::int64_t micro_batch, std::uint64_t seed) {
  Data data;
  data.micro_batch_ = micro_batch;
  data.seed_ = seed;
  const TensorId labels = labels_of(replica.graph());
  for (const LocalTensorId id : replica.inputs()) {
    const Tensor& origin = replica.graph()[replica.stage()[id].origin];
    Field field{id, origin.name, false, origin.index_bound};
    field.target = replica.stage()[id].origin == labels;
    field.whole = replica.groups().whole_shape(replica.stage()[id]);
    const Shape& shape = field.whole;
    field.batched = origin.batch_axis.has_value();
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      (origin.batch_axis && axis < *origin.batch_axis ? field.outer : field.row) *= shape[axis];
    field.run = field.batched ? field.row / micro_batch : field.row;
    if (!with_elements(replica[id], [](auto*) {}))
      return fail(fmt::format("inputs of type {} cannot be fed", to_string(replica.stage()[id].dtype)), origin.name);
    data.fields_.push_back(std::move(field));
  }
  return data;
}

Result<Data> Data::synthetic(Replica& replica, std::int64_t micro_batch, std::uint64_t seed) {
  return describe(replica, micro_batch, seed);
}

Result<Data> Data::from_folder(Replica& replica, std::int64_t micro_batch, std::uint64_t seed,
                               const std::filesystem::path& folder, std::int64_t global_batch) {
  SIBYL_TRY(Data data, describe(replica, micro_batch, seed));
  if (!std::filesystem::is_directory(folder)) return fail("there is no such folder", folder.string());
  for (Field& field : data.fields_) SIBYL_CHECK(data.load(field, folder));
  if (data.fields_.empty()) return data;  // a pipeline's stage that reads no samples
  if (data.samples_ < global_batch)
    return fail(fmt::format("{} samples are fewer than the batch of {}", data.samples_, global_batch), folder.string());
  data.per_epoch_ = data.samples_ / global_batch * global_batch;
  return data;
}

Result<void> Data::load(Field& field, const std::filesystem::path& folder) {
  const auto inputs = std::count_if(fields_.begin(), fields_.end(), [](const Field& f) { return !f.target; });
  std::filesystem::path path = folder / (field.target ? "targets.npy" : field.name + ".npy");
  if (field.target && !std::filesystem::exists(path) && std::filesystem::exists(folder / (field.name + ".npy")))
    path = folder / (field.name + ".npy");
  if (!field.target && inputs == 1 && !std::filesystem::exists(path)) path = folder / "inputs.npy";
  if (!field.batched) return fail(fmt::format("the input '{}' has no batch axis", field.name), path.string());
  SIBYL_TRY(field.file, read_npy(path));
  const Shape& shape = field.file.shape;
  const std::int64_t wanted = field.outer * field.run;
  if (!shape.empty() && shape[0] == 0) return fail("this array has no samples", path.string());
  if (shape.empty() || element_count(shape) / shape[0] != wanted)
    return fail(fmt::format("a sample of '{}' takes {} values; this array is {}", field.name, wanted, to_string(shape)),
                path.string());
  if (samples_ != 0 && shape[0] != samples_)
    return fail(fmt::format("{} samples where other files have {}", shape[0], samples_), path.string());
  samples_ = shape[0];
  if (field.index_bound == 0) return {};
  if (!field.file.reals.empty()) return fail(fmt::format("'{}' takes whole numbers", field.name), path.string());
  const auto wrong = std::find_if(field.file.integers.begin(), field.file.integers.end(),
                                  [&](std::int64_t id) { return id < 0 || id >= field.index_bound; });
  if (wrong != field.file.integers.end())
    return fail(fmt::format("'{}' takes numbers from 0 to {}, not {}", field.name, field.index_bound - 1, *wrong),
                path.string());
  return {};
}

std::int64_t Data::shuffled(std::int64_t number) {
  const std::int64_t epoch = number / per_epoch_;
  if (epoch != epoch_) {
    order_.resize(static_cast<std::size_t>(samples_));
    std::iota(order_.begin(), order_.end(), 0);
    RandomStream random(seed_, "epoch", static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = samples_ - 1; i > 0; --i)  // Fisher-Yates
      std::swap(order_[static_cast<std::size_t>(i)], order_[static_cast<std::size_t>(random.below(i + 1))]);
    epoch_ = epoch;
  }
  return order_[static_cast<std::size_t>(number % per_epoch_)];
}

void Data::write(at::Tensor& tensor, const Field& field, std::int64_t slot, std::int64_t sample) const {
  RandomStream random(seed_, field.name, static_cast<std::uint64_t>(sample));
  const std::int64_t from = sample * field.outer * field.run;
  with_elements(tensor, [&]<class T>(T* values) {
    for (std::int64_t row = 0; row < field.outer; ++row)
      for (std::int64_t i = 0; i < field.run; ++i) {
        T& value = values[row * field.row + slot * field.run + i];
        const auto at = static_cast<std::size_t>(from + row * field.run + i);
        if (!field.file.reals.empty())
          value = static_cast<T>(field.file.reals[at]);
        else if (!field.file.integers.empty())
          value = static_cast<T>(field.file.integers[at]);
        else if constexpr (is_real<T>)
          value = static_cast<T>(unit_variance * random.symmetric());
        else
          value = field.index_bound > 0 ? static_cast<T>(random.below(field.index_bound)) : T{1};
      }
  });
}

void Data::fill(Replica& replica, const std::vector<std::int64_t>& samples) {
  for (const Field& field : fields_) {
    at::Tensor& tensor = replica[field.id];
    const LocalTensor& local = replica.stage()[field.id];
    const bool here = local.cuts.empty() && tensor.device().is_cpu();
    at::Tensor whole = here ? tensor : at::empty(field.whole, tensor.options().device(at::kCPU));
    for (std::size_t slot = 0; slot < samples.size(); ++slot)
      if (field.batched || slot == 0)
        write(whole, field, static_cast<std::int64_t>(slot), field.batched ? samples[slot] : 0);
    if (!here) tensor.copy_(replica.groups().own_part(std::move(whole), local));
  }
}

void Data::fill(Replica& replica, std::int64_t first) {
  std::vector<std::int64_t> samples;
  for (std::int64_t slot = 0; slot < micro_batch_; ++slot)
    samples.push_back(samples_ > 0 ? shuffled(first + slot) : first + slot);
  fill(replica, samples);
}

void Data::fill_in_order(Replica& replica, std::int64_t first) {
  std::vector<std::int64_t> samples;
  for (std::int64_t slot = 0; slot < micro_batch_; ++slot) samples.push_back(std::min(first + slot, samples_ - 1));
  fill(replica, samples);
}

LocalTensorId Data::targets() const {
  const auto field = std::find_if(fields_.begin(), fields_.end(), [](const Field& f) { return f.target; });
  return field == fields_.end() ? LocalTensorId{} : field->id;
}

}  // namespace sibyl::trainer
