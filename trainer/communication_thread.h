// A thread that all-reduces buffers one after the other, in the order in which they are handed to it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <queue>
#include <span>
#include <thread>

#include "comm/communicator.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class CommunicationThread {
 public:
  CommunicationThread(Communicator& communicator, Algorithm algorithm);
  ~CommunicationThread();  // after what was handed in is done
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // The buffer must stay until wait() has returned.
  void all_reduce(std::span<float> buffer);
  void wait();  // until all is done
  // From here on each all-reduce is recorded; nullptr: no longer. Only while nothing is under way.
  void record(Recorder* recorder);

 private:
  void run();
  void reduce(std::span<float> buffer);

  Communicator& communicator_;
  Algorithm algorithm_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::span<float>> waiting_;
  bool busy_ = false, closing_ = false;
  Recorder* recorder_ = nullptr;
  std::size_t recorded_ = 0;  // all-reduces since record()
  std::thread thread_;        // last: it uses the others
};

}  // namespace sibyl::trainer
