// What is fed to the model: samples by their number, the same for any number of ranks.
//
// A step's global batch is samples n to n + global_batch - 1; who takes which is the caller's. Synthetic samples are
// drawn from a stream seeded by (seed, input's name, n): reals of mean 0 and variance 1, ids below their bound (ones
// where there is none: an attention mask that hides nothing). Real samples lie in a folder of npy files whose first
// axis counts samples: NAME.npy for the input NAME (inputs.npy will do for an only one), and targets.npy (or
// NAME.npy) for the loss's labels, which the model may reshape or cast first; they are shuffled anew each epoch, the
// seed deciding how, and an incomplete last batch of an epoch is left out.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/npy.h"
#include "trainer/replica.h"

namespace sibyl::trainer {

class Data {
 public:
  static Result<Data> synthetic(Replica& replica, std::int64_t micro_batch, std::uint64_t seed);
  // Checks every shape and id. `global_batch` samples are the least there must be.
  static Result<Data> from_folder(Replica& replica, std::int64_t micro_batch, std::uint64_t seed,
                                  const std::filesystem::path& folder, std::int64_t global_batch);

  // Writes samples first … first + micro_batch - 1 into the replica's inputs.
  void fill(Replica& replica, std::int64_t first);
  // The same from the folder in the files' order, past the end the last sample again: for evaluation.
  void fill_in_order(Replica& replica, std::int64_t first);

  [[nodiscard]] std::int64_t samples() const { return samples_; }  // in the folder; 0 if synthetic or none are read
  [[nodiscard]] LocalTensorId targets() const;                     // invalid where they are no input of this stage

 private:
  struct Field {
    LocalTensorId id;
    std::string name;
    bool target = false;
    std::int64_t index_bound = 0;
    // Sample s of the batch lies, for each of `outer` rows, at [s * run, (s + 1) * run) of `row` elements.
    std::int64_t outer = 1, run = 1, row = 1;
    bool batched = true;
    Shape whole = {};  // of which the rank may hold a part
    NpyArray file{};
  };

  static Result<Data> describe(Replica& replica, std::int64_t micro_batch, std::uint64_t seed);
  Result<void> load(Field& field, const std::filesystem::path& folder);
  void fill(Replica& replica, const std::vector<std::int64_t>& samples);
  [[nodiscard]] std::int64_t shuffled(std::int64_t number);
  void write(at::Tensor& tensor, const Field& field, std::int64_t slot, std::int64_t sample) const;

  std::vector<Field> fields_;
  std::int64_t micro_batch_ = 1, samples_ = 0, per_epoch_ = 0;
  std::uint64_t seed_ = 1;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;  // of epoch_
};

}  // namespace sibyl::trainer
