#include "trainer/gradient_exchange.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "aten/dtype.h"
#include "aten/memory.h"
#include "trainer/accumulation_hooks.h"
#include "trainer/communication_thread.h"
#include "trainer/gradient_arrivals.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

struct Place {
  LocalTensorId parameter;
  at::Tensor view;  // of the bucket's buffer, in the parameter's shape
  bool filled = false;
};

struct FlatBucket {
  at::Tensor buffer;
  std::vector<Place> places;
  std::size_t filled = 0;
};

}  // namespace

class GradientExchange::Impl {
 public:
  Impl(Replica& replica, const GradientSync& sync, Communicator& communicator, int replicas)
      : replica_(replica),
        sync_(sync),
        communicator_(communicator),
        arrivals_(replica.stage()),
        thread_(communicator),
        share_(at::scalar_tensor(1.0 / replicas, at::kFloat)) {
    if (sync.overlapped) add_hooks();
  }

  void begin(bool first_step, const std::vector<LocalTensorId>& complete) {
    const std::vector<Bucket>& wanted = first_step ? sync_.first_buckets : sync_.buckets;
    if (layout_ != &wanted) lay_out(wanted);
    for (FlatBucket& bucket : buckets_) {
      bucket.filled = 0;
      for (Place& place : bucket.places) place.filled = false;
    }
    next_ = 0;
    armed_ = sync_.overlapped;
    arrivals_.begin(splits_backward(replica_.stage()) ? Turn::Kind::backward_weight : Turn::Kind::backward);
    for (const LocalTensorId id : complete) gradient_ready(id);
  }

  void pack() {
    const at::NoGradGuard no_grad;
    armed_ = false;
    for (FlatBucket& bucket : buckets_)
      for (Place& place : bucket.places)
        if (!place.filled) fill(bucket, place);
  }

  void finish() {
    // Of parameters that several stages hold: who is done first would send its part beside what others still exchange.
    if (!sync_.stages.empty()) communicator_.barrier();
    send_ready();
    thread_.wait();
  }

  void record(Recorder* recorder) { thread_.record(recorder); }
  [[nodiscard]] const GradientSync& sync() const { return sync_; }

  void copy_back() {
    const at::NoGradGuard no_grad;
    for (FlatBucket& bucket : buckets_)
      for (Place& place : bucket.places) {
        if (replica_[place.parameter].is_meta()) continue;  // of an emulated device
        at::Tensor& gradient = replica_[place.parameter].mutable_grad();
        if (gradient.defined())
          gradient.copy_(place.view);
        else
          gradient = place.view.clone().to(replica_[place.parameter].device());
      }
  }

 private:
  void add_hooks() {
    for (const LocalTensorId id : replica_.parameters())
      if (replica_[id].requires_grad())
        hooks_.add(replica_[id], [this, id] {
          if (arrivals_.last(id)) gradient_ready(id);
        });
  }

  void lay_out(const std::vector<Bucket>& wanted) {
    buckets_.clear();
    place_of_.clear();
    for (const Bucket& bucket : wanted) {
      // Gradients of two-byte weights lie in their bucket: an emulated device's are counted as the parameters'.
      std::optional<aten::MemoryMeter::Pause> uncounted;
      if (replica_.emulated() != nullptr && size_in_bytes(bucket.dtype) == 2) uncounted.emplace();
      FlatBucket flat{at::zeros({bucket.elements}, aten::scalar_type(bucket.summed)), {}, 0};
      std::int64_t at = 0;
      for (const LocalTensorId id : bucket.parameters) {
        const Shape& shape = replica_.stage()[id].shape;
        place_of_[id] = {buckets_.size(), flat.places.size()};
        flat.places.push_back({id, flat.buffer.narrow(0, at, element_count(shape)).view(shape)});
        at += element_count(shape);
      }
      buckets_.push_back(std::move(flat));
    }
    layout_ = &wanted;
  }

  void gradient_ready(LocalTensorId id) {
    const auto found = place_of_.find(id);
    if (!armed_ || found == place_of_.end()) return;
    const at::NoGradGuard no_grad;
    FlatBucket& bucket = buckets_[found->second.first];
    fill(bucket, bucket.places[found->second.second]);
    send_ready();
  }

  void fill(FlatBucket& bucket, Place& place) {
    const at::Tensor& gradient = replica_[place.parameter].grad();
    if (gradient.defined() && !gradient.device().is_cpu() && !gradient.is_meta())
      place.view.copy_(gradient * share_);  // the bucket lies where messages are sent from
    else if (gradient.defined() && !gradient.is_meta())
      at::mul_out(place.view, gradient, share_);
    else if (replica_.emulated() == nullptr)  // whose buckets are zeros and stay so
      place.view.zero_();
    place.filled = true;
    ++bucket.filled;
  }

  // In order: all ranks must hand the same bucket to the same all-reduce.
  void send_ready() {
    for (; next_ < buckets_.size() && buckets_[next_].filled == buckets_[next_].places.size(); ++next_)
      thread_.all_reduce(elements_of(buckets_[next_].buffer));
  }

  Replica& replica_;
  const GradientSync& sync_;
  Communicator& communicator_;
  GradientArrivals arrivals_;
  AccumulationHooks hooks_;
  const std::vector<Bucket>* layout_ = nullptr;
  std::vector<FlatBucket> buckets_;
  std::unordered_map<LocalTensorId, std::pair<std::size_t, std::size_t>> place_of_;
  std::size_t next_ = 0;  // bucket to send
  bool armed_ = false;
  CommunicationThread thread_;
  at::Tensor share_;
};

GradientExchange::GradientExchange(Replica& replica, const GradientSync& sync, Communicator& communicator, int replicas)
    : impl_(std::make_unique<Impl>(replica, sync, communicator, replicas)) {}
GradientExchange::~GradientExchange() = default;
void GradientExchange::begin(bool first_step, const std::vector<LocalTensorId>& complete) {
  impl_->begin(first_step, complete);
}
void GradientExchange::pack() { impl_->pack(); }
void GradientExchange::finish() { impl_->finish(); }
void GradientExchange::copy_back() { impl_->copy_back(); }
const GradientSync& GradientExchange::sync() const { return impl_->sync(); }
void GradientExchange::record(Recorder* recorder) { impl_->record(recorder); }

}  // namespace sibyl::trainer
