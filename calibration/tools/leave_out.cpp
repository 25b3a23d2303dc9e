// leave_out CALIBRATION.json [TRUTH.json]: how well a calibration predicts kernels that it has not seen.
//
// Without TRUTH, twenty-fold: each twentieth of the samples is predicted from the rest. With it, the samples of TRUTH
// that the calibration lacks are predicted from the whole calibration. Prints, for each operation and pass, the errors
// of time and how often the truth lay within one and two standard deviations.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "calibration/calibration.h"

namespace {

using namespace sibyl;

struct Outcome {
  double error;   // |predicted / true - 1|
  double stated;  // relative error that the table claims
};

std::string group_of(const KernelKey& key) {
  std::string text = to_string(key);
  text = text.substr(0, text.find('['));
  if (std::holds_alternative<Convolution>(key.signature.attributes)) text = text.substr(0, text.find('('));
  return fmt::format("{}:{}", text, to_string(key.signature.dtype));
}

class Report {
 public:
  void add(const KernelTable& table, const KernelSample& sample) {
    const auto start = std::chrono::steady_clock::now();
    const Estimate e = table.estimate(sample.key).time;
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++count_;
    groups_[group_of(sample.key)].push_back({std::abs(e.time / sample.time - 1), e.relative_error});
  }

  void print() const {
    fmt::print("{:<52}{:>7}{:>9}{:>8}{:>8}{:>9}{:>9}\n", "kernels", "count", "median %", "mean %", "p90 %", "<1 sd %",
               "<2 sd %");
    for (const auto& [name, outcomes] : groups_) {
      std::vector<double> errors;
      double sum = 0, one = 0, two = 0;
      for (const Outcome& o : outcomes) {
        errors.push_back(o.error);
        sum += o.error;
        one += o.error <= o.stated ? 1 : 0;
        two += o.error <= 2 * o.stated ? 1 : 0;
      }
      std::sort(errors.begin(), errors.end());
      const double n = static_cast<double>(errors.size());
      auto quantile = [&](double q) { return 100 * errors[static_cast<std::size_t>(q * (n - 1))]; };
      fmt::print("{:<52}{:>7}{:>9.1f}{:>8.1f}{:>8.1f}{:>9.0f}{:>9.0f}\n", name, errors.size(), quantile(0.5),
                 100 * sum / n, quantile(0.9), 100 * one / n, 100 * two / n);
    }
    fmt::print(stderr, "{:.1f} us per estimate\n", 1e6 * seconds_ / count_);
  }

 private:
  std::map<std::string, std::vector<Outcome>> groups_;
  double seconds_ = 0, count_ = 0;
};

void twenty_fold(const Calibration& calibration, Report& report) {
  constexpr std::size_t folds = 20;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<KernelSample> seen, unseen;
    for (std::size_t i = 0; i < calibration.kernels.size(); ++i)
      (std::hash<std::string>{}(to_string(calibration.kernels[i].key)) % folds == fold ? unseen : seen)
          .push_back(calibration.kernels[i]);
    const KernelTable table(calibration.device, std::move(seen));
    for (const KernelSample& sample : unseen) report.add(table, sample);
  }
}

void against(const Calibration& calibration, const Calibration& truth, Report& report) {
  std::unordered_set<KernelKey> seen;
  for (const KernelSample& sample : calibration.kernels) seen.insert(sample.key);
  const KernelTable table(calibration.device, calibration.kernels);
  for (const KernelSample& sample : truth.kernels)
    if (!seen.contains(sample.key)) report.add(table, sample);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: leave_out CALIBRATION.json [TRUTH.json]\n");
    return 2;
  }
  const auto calibration = load_calibration(argv[1]);
  const auto truth = load_calibration(argv[argc - 1]);
  if (!calibration || !truth) {
    fmt::print(stderr, "{}\n", to_string(!calibration ? calibration.error() : truth.error()));
    return 3;
  }
  Report report;
  if (argc == 2)
    twenty_fold(*calibration, report);
  else
    against(*calibration, *truth, report);
  report.print();
}
