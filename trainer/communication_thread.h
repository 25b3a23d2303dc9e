// A thread that all-reduces, scatters and gathers buffers one after the other, in the order in which they are handed to
// it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class CommunicationThread {
 public:
  explicit CommunicationThread(Communicator& communicator);
  ~CommunicationThread();  // after what was handed in is done
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // The buffer must stay until wait() has returned.
  void all_reduce(const Elements& buffer);
  // The same, of any collective, and among other ranks where they are given; the result is the number of what was
  // handed in, from 1 on.
  std::size_t begin(Collective collective, const Elements& buffer, std::string name, Communicator* among = nullptr);
  void wait();                    // until all is done
  void wait(std::size_t number);  // until this one is, and all before it
  // From here on each all-reduce is recorded; nullptr: no longer. Only while nothing is under way.
  void record(Recorder* recorder);

 private:
  struct Item {
    Collective collective = Collective::all_reduce;
    Elements buffer;
    std::string name;  // in timelines; empty: the next bucket's
    Communicator* among = nullptr;
  };
  void run();
  void perform(const Item& item);
  // The caller has nothing to do meanwhile, so that the thread may look for messages without a pause (comm/waiting.h).
  template <class Done>
  void wait_until(const Done& done);

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<Item> waiting_;
  std::size_t taken_ = 0, done_ = 0;  // items so far
  bool busy_ = false, closing_ = false;
  std::atomic<bool> compute_runs_ = true;
  Recorder* recorder_ = nullptr;
  std::size_t recorded_ = 0;  // all-reduces since record()
  std::thread thread_;        // last: it uses the others
};

}  // namespace sibyl::trainer
