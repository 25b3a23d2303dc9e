// A device that computes nothing and takes its time: network, overlap and schedules run for real, with more ranks than
// there are processors, while each kernel lasts as long as a calibration says.
//
// Tensors have sizes and no memory; their bytes are counted by the MemoryMeter as if they had. Autograd is the
// framework's own: each operation is one node that keeps what the training rule says, so memory follows the same lives
// as in real training. Like a GPU it runs beside the host: a kernel begins when the one before it has ended and its
// launch has been issued, by a clock that counts kernels' times and not the host's; wait() sleeps until that clock, so
// what the emulation itself costs is hidden as long as kernels last longer. What is sent has the true size and zeros in
// it.
#pragma once

#include <torch/types.h>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "oracle/plan/plan.h"
#include "trainer/bare_messages.h"
#include "trainer/emulated_times.h"
#include "trainer/random.h"

namespace sibyl::trainer {

// When what was launched on a device has been issued, and when it will have run. The stages of a rank lie on one
// device, whose kernels run one after the other, whichever stage launched them.
struct EmulatedClock {
  std::chrono::steady_clock::time_point issued, ended;
  std::mutex copying;  // of `ended`, which copies put off
};

// One stage on such a device.
class EmulatedDevice {
 public:
  // All must outlive it.
  EmulatedDevice(const Stage& stage, const EmulatedStage& times, Backend backend, bool sums_apart,
                 EmulatedClock& clock);
  // From here on times vary (EmulatedTimes::vary), log-normal and of the given mean; each work takes the next draw.
  void vary(RandomStream draws, double step_spread);

  [[nodiscard]] at::Tensor tensor(const Shape& shape, DType type) const;

  // Nothing runs. Every launch from here on.
  void begin_step();
  // Backward passes to come are of this kind of turn; of the step's first micro-batch, or its last.
  void begin_backward(Turn::Kind kind, bool first, bool last);

  // One operation; backward is recorded where the plan has one.
  std::vector<at::Tensor> run(std::size_t step, const std::vector<at::Tensor>& inputs);
  // One exchange between operations, its messages sent for real. `overwrite`: as of perform() (exchange.h).
  at::Tensor exchange(std::size_t step, const at::Tensor& x, Communicator& communicator, bool overwrite);
  // What goes round while the next operation computes, or, backward, the last one launched did.
  void send_beside(const Transfer& transfer, const at::Tensor& x, Communicator& communicator);
  // Its messages alone: the copies around them are kernels.
  void send(const Transfer& transfer, const at::Tensor& x, Communicator& communicator);
  void run(const EmulatedWork& work);  // with its workspace, and no results

  // A copy between the device and where something lies outside it: until it is done. By a thread of its own; where
  // kernels and copies slow each other, both take so much longer while both are under way.
  void copy(Seconds duration);

  void wait();         // until all that was launched has run
  void host_waited();  // for something else (messages): what is launched next starts now
  void wait_after_each(bool yes) { wait_after_each_ = yes; }  // so that spans taken by the host are the device's

  // What the kernels of the step were to take, one after the other; what was slept for in between does not count.
  [[nodiscard]] Seconds busy() const { return Seconds{std::chrono::duration<double>(busy_).count()}; }

  [[nodiscard]] const Stage& stage() const { return stage_; }
  [[nodiscard]] Backend backend() const { return backend_; }
  [[nodiscard]] const EmulatedStage& times() const { return times_; }
  [[nodiscard]] const TrainingRule& rule(std::size_t step) const { return rules_[step]; }
  void run_backward(std::size_t step);
  // A kernel has its workspace while its results are there already: to be called when they have been made.
  void take_scratch_of_backward(std::size_t step);

 private:
  using Clock = std::chrono::steady_clock;
  double drawn(double spread);
  void spend(const EmulatedWork& work);
  static void take_scratch(const EmulatedWork& work);

  const Stage& stage_;
  const EmulatedStage& times_;
  std::vector<TrainingRule> rules_;  // by step
  struct Beside {
    Transfer transfer;
    at::Tensor x;
    Communicator* communicator = nullptr;
  };
  void send_waiting();

  std::vector<Beside> waiting_;  // for the kernel that they go beside
  [[nodiscard]] Clock::time_point ended() const;

  EmulatedClock& clock_;
  Backend backend_;
  Clock::duration busy_{}, last_kernel_{};
  std::vector<std::uint32_t> later_;  // by step: gradients that a backward_weight turn computes
  Turn::Kind kind_ = Turn::Kind::backward;
  bool first_ = true, last_ = true, wait_after_each_ = false;
  std::optional<RandomStream> draws_;  // none: nothing varies
  double step_spread_ = 0, step_factor_ = 1;
  BareMessages messages_;
};

}  // namespace sibyl::trainer
