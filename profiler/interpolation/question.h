// A kernel that several devices' samples are asked about: what each of them looks up of it, found once.
//
// Works out its relatives, substitutes and parts when they are first asked for: not for several threads at once.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/interpolation/family.h"
#include "profiler/interpolation/relations.h"

namespace sibyl::interpolation {

class Question {
 public:
  // `key`: a cost_key.
  explicit Question(KernelKey key);
  ~Question();
  Question(const Question&);
  Question(Question&&) noexcept;
  Question& operator=(const Question&) = delete;

  [[nodiscard]] const KernelKey& key() const { return key_; }
  [[nodiscard]] std::size_t hash() const { return hash_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const std::vector<Relative>& relatives(Backend backend) const;
  struct InAnotherType;
  [[nodiscard]] const std::vector<InAnotherType>& substitutes() const;
  // Of a backward pass of several gradients that runs a kernel for each of them, these; else none.
  [[nodiscard]] const std::vector<Question>& parts() const;

 private:
  KernelKey key_;
  std::size_t hash_;
  Place place_;
  mutable std::vector<std::pair<Backend, std::vector<Relative>>> relatives_;
  mutable std::vector<InAnotherType> substitutes_;
  mutable bool knows_substitutes_ = false;
  mutable std::optional<std::vector<Question>> parts_;
};

struct Question::InAnotherType {
  Question question;
  double error;
};

}  // namespace sibyl::interpolation
