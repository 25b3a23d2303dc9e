#include "trainer/communication_thread.h"

#include "comm/prompt_thread.h"

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
    communicator_.all_reduce(buffer, algorithm_);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace sibyl::trainer
