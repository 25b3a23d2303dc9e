#include "oracle/closed/made_again.h"

#include <algorithm>

#include "oracle/plan/pipeline/cut.h"

namespace sibyl::closed {
namespace {

// No stage begins between them.
bool of_one_operation(const Stage& program, std::size_t a, std::size_t b) {
  const auto *one = std::get_if<Compute>(&program.steps[a]), *other = std::get_if<Compute>(&program.steps[b]);
  return one && other && one->operation == other->operation;
}

}  // namespace

MadeAgain::MadeAgain(const Stage& program) : first_reader_(program.steps.size(), 0) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  const std::vector<bool> repeatable = repeatable_steps(program);
  std::vector<std::size_t> producer(program.tensors.size(), none);  // of those that are made again
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (!repeatable[i]) continue;
    first_reader_[i] = none;
    for (const LocalTensorId out : outputs_of(program.steps[i]))
      if (out.valid()) producer[out.index()] = i;
  }
  std::vector<std::size_t> seen(program.steps.size(), none);  // by which reader
  const auto want = [&](auto& self, std::size_t reader, std::size_t step) -> void {
    for (const LocalTensorId in : inputs_of(program.steps[step])) {
      const std::size_t made_by = in.valid() ? producer[in.index()] : none;
      if (made_by == none || seen[made_by] == reader) continue;
      seen[made_by] = reader;
      first_reader_[made_by] = std::min(first_reader_[made_by], reader);
      self(self, reader, made_by);
      if (!of_one_operation(program, made_by, reader)) wanted_.push_back({reader, made_by});
    }
  };
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (!repeatable[i]) want(want, i, i);
}

std::vector<MadeAgain::Repeated> MadeAgain::of(std::size_t begin, std::size_t end) const {
  std::vector<Repeated> result;
  for (auto one = std::ranges::lower_bound(wanted_, begin, {}, &Repeated::reader);
       one != wanted_.end() && one->reader < end; ++one)
    if (one->step < begin && std::ranges::find(result, one->step, &Repeated::step) == result.end())
      result.push_back(*one);
  return result;
}

}  // namespace sibyl::closed
