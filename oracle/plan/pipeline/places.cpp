#include "oracle/plan/pipeline/places.h"

#include "oracle/plan/pipeline/cut.h"

namespace sibyl {

Places::Places(const Stage& whole) {
  const std::vector<OperationId> operations = beginnings(whole);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    if (operations[i].valid()) position_.push_back(i);
    of_step_.push_back(static_cast<std::uint32_t>(position_.size() - 1));
  }
  position_.push_back(whole.steps.size());
}

WantedBySeveral::WantedBySeveral(const std::vector<std::size_t>& places, std::size_t count, double all)
    : bytes(all), next_(count + 1, static_cast<std::uint32_t>(count)) {
  std::size_t at = 0;
  for (const std::size_t place : places)
    for (; at <= place; ++at) next_[at] = static_cast<std::uint32_t>(place);
}

std::vector<double> sums_before(const std::vector<double>& at) {
  std::vector<double> sums(at.size() + 1, 0.0);
  for (std::size_t i = 0; i < at.size(); ++i) sums[i + 1] = sums[i] + at[i];
  return sums;
}

}  // namespace sibyl
