#include "profiler/cudnn/bench.h"

#include <algorithm>

#include "base/statistics.h"

namespace sibyl::cudnn {
namespace {

constexpr std::size_t alignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (std::max<std::size_t>(1, bytes) + alignment - 1) / alignment * alignment;
}

// A library's many engines may want more scratch than is wise; those are left out, but for the framework's own choice.
constexpr std::size_t most_alternative_workspace = std::size_t{4} << 30;

std::size_t workspace_of(const std::vector<Step>& steps) {
  std::size_t most = 0;
  for (const Step& step : steps)
    for (const Choice& choice : step.choices) most = std::max(most, choice.workspace);
  return most;
}

}  // namespace

Stopwatch::Stopwatch(const Libraries& libraries) : stream_(libraries.stream()) {
  std::vector<double> empty;
  for (int i = 0; i < 21; ++i) empty.push_back(time([] {}));
  empty_ = median(empty);
}

Bench::Bench(const Libraries& libraries, Program program, int copies, std::size_t padding, std::size_t lap)
    : libraries_(libraries),
      program_(std::move(program)),
      pad_(padding > 0 ? lap + padding : 0),
      padding_(padding),
      stopwatch_(libraries) {
  for (Step& step : program_.steps)
    step.choices.erase(std::remove_if(step.choices.begin() + 1, step.choices.end(),
                                      [](const Choice& c) { return c.workspace > most_alternative_workspace; }),
                       step.choices.end());
  std::size_t scratch = std::max(workspace_of(program_.steps), workspace_of(program_.fused));
  for (const Choice& choice : program_.before) scratch = std::max(scratch, choice.workspace);
  workspace_ = Memory(scratch);
  std::size_t bytes = 0;
  for (const Buffer& buffer : program_.buffers) bytes += aligned(buffer.bytes());
  for (int copy = 0; copy < copies; ++copy) {
    copies_.emplace_back(bytes);
    std::vector<void*> places;
    std::size_t offset = 0;
    for (const Buffer& buffer : program_.buffers) {
      places.push_back(static_cast<std::byte*>(copies_.back().data()) + offset);
      offset += aligned(buffer.bytes());
    }
    buffers_.push_back(std::move(places));
    fill(copy);
    for (const Choice& choice : program_.before) choice.run(operands(copy));
  }
  for (const std::vector<Step>* steps : {&program_.steps, &program_.fused})
    for (const Step& step : *steps) step.choices.front().run(operands(0));
  check(cudaStreamSynchronize(libraries_.stream()), "the first run");
}

Run Bench::operands(int copy) const {
  return {buffers_[static_cast<std::size_t>(copy)], workspace_.data(), libraries_};
}

void Bench::fill(int copy) {
  const cudaStream_t stream = libraries_.stream();
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    void* data = buffers_[static_cast<std::size_t>(copy)][i];
    const auto seed = static_cast<std::uint32_t>(i + 1);
    if (buffer.count == 0) continue;
    switch (buffer.fill) {
      case Buffer::Fill::values: fill_values(buffer.type, data, buffer.count, seed, stream); break;
      case Buffer::Fill::ids:
        fill_ids(static_cast<std::int64_t*>(data), buffer.count, buffer.bound, seed, stream);
        break;
      case Buffer::Fill::flags: fill_flags(static_cast<std::uint8_t*>(data), buffer.count, seed, stream); break;
      case Buffer::Fill::zeros:
      case Buffer::Fill::nothing: check(cudaMemsetAsync(data, 0, buffer.bytes(), stream), "zeros"); break;
    }
  }
}

void Bench::prepare(int copy) {
  if (padding_ > 0) {
    if (next_ + padding_ > pad_.bytes()) next_ = 0;
    write_again(static_cast<std::byte*>(pad_.data()) + next_, padding_, libraries_.stream());
    next_ = (next_ + padding_) / alignment * alignment;
  }
  if (program_.warm)
    write_again(operands(copy).at(*program_.warm), program_.buffers[*program_.warm].bytes(), libraries_.stream());
}

double Bench::run(int copy, const std::vector<Step>& steps) {
  prepare(copy);
  const Run at = operands(copy);
  return stopwatch_.time([&] {
    for (const Step& step : steps) step.choices.front().run(at);
  });
}

double Bench::run_choice(int copy, std::size_t step, std::size_t choice) {
  prepare(copy);
  const Run at = operands(copy);
  return stopwatch_.time([&] { program_.steps[step].choices[choice].run(at); });
}

std::size_t Bench::workspace() const {
  std::size_t most = 0;
  for (const Step& step : program_.steps) most = std::max(most, step.choices.front().workspace);
  return most;
}

}  // namespace sibyl::cudnn
