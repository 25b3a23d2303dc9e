#include "calibration/program/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <sstream>

#include "base/files.h"

namespace sibyl {
namespace {

// ISO 8601, UTC.
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

// Facts that may change on a machine that stays the same: a virtual machine's memory, a kernel's or a driver's update.
bool may_change(const std::string& fact) { return fact == "memory" || fact == "os" || fact == "gpu_driver"; }

// Facts that one way of timing kernels has and another has not.
constexpr std::array told_by_some = {"engines", "gpu", "layout"};

std::string text_of(Backend backend) { return backend == Backend::cuda ? "cuda" : "cpu"; }

std::string text_of(const std::map<std::string, std::string>& facts) {
  std::string text;
  for (const auto& [name, value] : facts)
    if (!may_change(name)) text += fmt::format("{}={}; ", name, value);
  return text;
}

// What samples of one file must have in common.
std::string identity(const Calibration& calibration) {
  return fmt::format("{}{}ranks_per_node={}; threads={}", text_of(calibration.machine), text_of(calibration.libraries),
                     calibration.ranks_per_node, calibration.threads);
}

Failure another_set_up(const std::string& file, const std::string& what, const std::string& there,
                       const std::string& now, const std::string& hint = "name another file with -o") {
  return fail(fmt::format("was measured with {} {}, this run has {}", what, there, now), file, hint);
}

Result<void> must_match(const Calibration& stored, const Calibration& here, const std::string& file) {
  const auto differs = [&](const std::string& what, const std::string& there, const std::string& now) {
    return another_set_up(file, what, there, now);
  };
  if (stored.device.backend != here.device.backend)
    return another_set_up(file, "backend", text_of(stored.device.backend), text_of(here.device.backend),
                          "name another file with -o; a GPU's takes `io` of its machine, once the GPU is in it, and a "
                          "cluster file joins a network to it (network: FILE)");
  const auto compare = [&](const auto& old_facts, const auto& new_facts) -> Result<void> {
    for (const auto& [name, value] : new_facts)
      if (const auto old = old_facts.find(name); old != old_facts.end() && old->second != value && !may_change(name))
        return differs(name, old->second, value);
    return {};
  };
  SIBYL_CHECK(compare(stored.machine, here.machine));
  SIBYL_CHECK(compare(stored.libraries, here.libraries));
  const auto told = [](const Calibration& of, const std::string& fact) {
    const auto found = of.machine.find(fact);
    return found == of.machine.end() ? std::string("none") : found->second;
  };
  for (const char* fact : told_by_some)
    if (!stored.kernels.empty() && stored.machine.contains(fact) != here.machine.contains(fact))
      return differs(fact, told(stored, fact), told(here, fact));
  if (stored.ranks_per_node != here.ranks_per_node)
    return differs("ranks per node", std::to_string(stored.ranks_per_node), std::to_string(here.ranks_per_node));
  if (stored.threads != here.threads)
    return differs("threads", std::to_string(stored.threads), std::to_string(here.threads));
  return {};
}

// What a GPU's file and a run of its machine's storage have in common: the processor. How kernels were timed, by how
// many ranks and threads, is nothing to such a run. Of hardware threads the file may count those that are there, and
// the run those that it may use.
Result<void> must_be_of_one_machine(const Calibration& stored, const Calibration& here, const std::string& file) {
  const auto old = stored.machine.find("cpu"), now = here.machine.find("cpu");
  if (old == stored.machine.end() || now == here.machine.end() || old->second == now->second) return {};
  return another_set_up(file, "cpu", old->second, now->second);
}

}  // namespace

Result<Session> Session::open(const Ranks& ranks, const std::filesystem::path& path, const Setup& setup) {
  Session session(ranks, path);
  const Result<void> loaded = session.load(setup);
  SIBYL_CHECK(ranks.agree(loaded));
  return session;
}

Result<void> Session::load(const Setup& setup) {
  Calibration here;
  here.machine = setup.machine;
  here.libraries = setup.libraries;
  here.ranks_per_node = ranks_->per_node();
  here.threads = setup.threads;
  here.device.backend = setup.backend;
  calibration_ = here;
  if (!ranks_->first()) return {};

  if (std::filesystem::exists(path_)) {
    SIBYL_TRY(calibration_, load_calibration(path_));
    // The journal is of who times kernels.
    if (setup.storage_alone && calibration_.device.backend == Backend::cuda)
      return must_be_of_one_machine(calibration_, here, path_.string());
    if (here.machine.contains("pages")) calibration_.machine.try_emplace("pages", "small");  // before they were said
    SIBYL_CHECK(must_match(calibration_, here, path_.string()));
    if (calibration_.kernels.empty()) {
      calibration_.machine.insert(here.machine.begin(), here.machine.end());
      calibration_.libraries.insert(here.libraries.begin(), here.libraries.end());
    }
  }
  identity_ = identity(here);
  SIBYL_CHECK(read_left_out());
  SIBYL_CHECK(open_journal());
  for (const KernelSample& sample : journal_->recovered()) {
    // A run that was killed between saving and removing its journal has its samples in both.
    const bool saved = std::any_of(calibration_.kernels.begin(), calibration_.kernels.end(), [&](const auto& s) {
      return s.time == sample.time && s.key == sample.key;
    });
    if (!saved) calibration_.kernels.push_back(sample);
  }
  for (const KernelSample& sample : calibration_.kernels) known_[to_string(sample.key)].push_back(sample.time.value());
  return {};
}

Result<void> Session::open_journal() {
  if (journal_) return {};
  SIBYL_TRY(Journal journal, Journal::open(journal_path(path_), identity_));
  journal_.emplace(std::move(journal));
  return {};
}

// The first line is the set-up's: another one's kernels may do no harm to this one.
Result<void> Session::read_left_out() {
  if (!std::filesystem::exists(left_out_path())) return {};
  SIBYL_TRY(const std::string text, read_file(left_out_path()));
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != identity_) return {};
  while (std::getline(lines, line)) left_out_.insert(line);
  return {};
}

Result<void> Session::leave_out(const KernelKey& key) {
  left_out_.insert(to_string(key));
  std::string text = identity_ + "\n";
  for (const std::string& name : left_out_) text += name + "\n";
  return replace_file(left_out_path(), text);
}

Result<void> Session::add(const KernelSample& sample) {
  SIBYL_CHECK(open_journal());
  SIBYL_CHECK(journal_->append(sample));
  known_[to_string(sample.key)].push_back(sample.time.value());
  calibration_.kernels.push_back(sample);
  return {};
}

std::span<const double> Session::times_of(const KernelKey& key) const {
  const auto found = known_.find(to_string(key));
  return found == known_.end() ? std::span<const double>{} : found->second;
}

Result<void> Session::write() {
  calibration_.date = today();
  return save_calibration(calibration_, path_);
}

Result<void> Session::save() {
  const auto save_here = [&]() -> Result<void> {
    if (!ranks_->first()) return {};
    SIBYL_CHECK(write());
    if (journal_) SIBYL_CHECK(journal_->remove());  // its samples are all in the file now
    journal_.reset();
    return {};
  };
  return ranks_->agree(save_here());
}

}  // namespace sibyl
