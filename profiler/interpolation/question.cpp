#include "profiler/interpolation/question.h"

#include <algorithm>

#include "profiler/interpolation/cost_key.h"
#include "profiler/interpolation/samples.h"

namespace sibyl::interpolation {

Question::Question(KernelKey key) : key_(std::move(key)), hash_(hash_value(key_)), place_(interpolation::place(key_)) {}
Question::~Question() = default;
Question::Question(const Question&) = default;
Question::Question(Question&&) noexcept = default;

const std::vector<Relative>& Question::relatives(Backend backend) const {
  const auto known = std::ranges::find(relatives_, backend, &std::pair<Backend, std::vector<Relative>>::first);
  if (known != relatives_.end()) return known->second;
  return relatives_.emplace_back(backend, related(key_, backend)).second;
}

const std::vector<Question::InAnotherType>& Question::substitutes() const {
  if (knows_substitutes_) return substitutes_;
  knows_substitutes_ = true;
  for (const Substitute& substitute : interpolation::substitutes(key_)) {
    KernelKey other = key_;
    other.signature.dtype = substitute.dtype;
    substitutes_.push_back({Question(std::move(other)), substitute.error});
  }
  return substitutes_;
}

const std::vector<Question>& Question::parts() const {
  if (parts_) return *parts_;
  parts_.emplace();
  const std::vector<std::uint32_t> bits = single_gradients(key_.gradients);
  if (bits.size() < 2 || !one_kernel_per_gradient(key_.signature.attributes)) return *parts_;
  for (const std::uint32_t bit : bits) parts_->emplace_back(with_gradients(key_, bit));
  return *parts_;
}

}  // namespace sibyl::interpolation
