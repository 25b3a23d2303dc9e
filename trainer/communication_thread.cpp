#include "trainer/communication_thread.h"

#include "comm/prompt_thread.h"
#include "oracle/plan/names.h"

namespace sibyl::trainer {

CommunicationThread::CommunicationThread(Communicator& communicator, Algorithm algorithm)
    : communicator_(communicator), algorithm_(algorithm), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommunicationThread::all_reduce(std::span<float> buffer) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push(buffer);
  }
  changed_.notify_all();
}

void CommunicationThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
}

void CommunicationThread::record(Recorder* recorder) {
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
  recorded_ = 0;
}

void CommunicationThread::reduce(std::span<float> buffer) {
  const Seconds start = recorder_ != nullptr ? recorder_->now() : Seconds{};
  communicator_.all_reduce(buffer, algorithm_);
  if (recorder_ != nullptr)
    recorder_->add(Recorder::Track::communication, {bucket_name(recorded_++),
                                                    "communication",
                                                    start,
                                                    recorder_->now(),
                                                    {{"bytes", static_cast<std::int64_t>(buffer.size_bytes())},
                                                     {"algorithm", std::string(to_string(algorithm_))}}});
}

void CommunicationThread::run() {
  comm::run_promptly();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::span<float> buffer = waiting_.front();
    waiting_.pop();
    busy_ = true;
    lock.unlock();
    reduce(buffer);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace sibyl::trainer
