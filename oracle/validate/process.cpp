#include "oracle/validate/process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace sibyl {
namespace {

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got > 0)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return text;
  }
}

volatile std::sig_atomic_t signalled = 0;
volatile std::sig_atomic_t waited_for = 0;  // process id

Result<void> check_status(int status, const std::string& program) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (was_interrupted() || (WIFEXITED(status) && WEXITSTATUS(status) == 130) ||
      (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT))
    return fail(ErrorCode::interrupted, "interrupted", program);
  if (WIFSIGNALED(status)) return fail(fmt::format("died of {}", strsignal(WTERMSIG(status))), program);
  return fail(fmt::format("failed with exit status {}", WEXITSTATUS(status)), program);
}

}  // namespace

void outlive_interruption() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    signalled = 1;
    if (signal == SIGTERM && waited_for > 0) kill(static_cast<pid_t>(waited_for), SIGTERM);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_interrupted() { return signalled != 0; }

Result<std::string> run_process(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)), arguments[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int refused = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (refused != 0) {
    close(ends[0]);
    return fail(fmt::format("cannot be started: {}", std::strerror(refused)), arguments[0]);
  }
  waited_for = child;
  std::string output = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  waited_for = 0;
  SIBYL_CHECK(check_status(status, arguments[0]));
  return output;
}

Result<std::vector<std::string>> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool open = false;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t') {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) return fail("unbalanced quotes");
  if (open) words.push_back(std::move(word));
  return words;
}

}  // namespace sibyl
