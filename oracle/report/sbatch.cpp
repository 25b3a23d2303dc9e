// A plan as a job for Slurm.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "base/shell.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

bool is_plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
}

// What stands on a comment line must not break it.
std::string line(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(
      result, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return result;
}

// zoo:resnet50 -> resnet50, models/my net.onnx -> my-net
std::string job_name(std::string_view model) {
  model.remove_prefix(std::min(model.find_last_of("/:") + 1, model.size()));
  std::string name(model.substr(0, model.rfind(".onnx")));
  std::ranges::replace_if(
      name, [](char c) { return !is_plain(c) || c == '%'; }, '-');
  return "sibyl-" + name;
}

// Twice what the steps and their warm-up are predicted to take, and ten minutes for all else, in whole minutes.
std::string time_limit(Seconds step, std::int64_t steps) {
  const double seconds = 2 * step.value() * static_cast<double>(steps + 3) + 600;
  const auto minutes = static_cast<std::int64_t>(std::ceil(std::min(seconds, 3e7) / 60));
  return fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60);
}

}  // namespace

Result<std::string> to_sbatch(const PredictionReport& report, std::int64_t steps) {
  const Prediction& p = report.prediction;
  if (report.model == "standard input")
    return fail("the model came from standard input: a job needs a file or zoo:NAME", "$.model",
                "predict again with the model's path");
  std::vector<std::string> words = {report.model,
                                    "--parallel=" + p.parallel,
                                    fmt::format("--batch={}", p.global_batch),
                                    fmt::format("--micro-batches={}", p.micro_batches),
                                    "--precision=" + p.precision,
                                    "--optimizer=" + p.optimizer};
  // The trainer has no prices to balance stages by.
  std::vector<std::string_view> starts;
  for (std::size_t s = 1; s < p.stages.size(); ++s) starts.push_back(p.stages[s].first);
  if (!starts.empty()) words.push_back(fmt::format("--stages={}", fmt::join(starts, ",")));
  for (const std::string& option : report.options) {
    const std::string name = option.substr(0, option.find('=')) + "=";
    const bool said =
        std::ranges::any_of(std::span(words).subspan(1), [&](const std::string& w) { return w.starts_with(name); });
    if (!said || name == "--dim=") words.push_back(option);
  }
  std::string command;
  for (const std::string& w : words) command += " " + shell_word(w);

  return fmt::format(
      "#!/bin/bash\n"
      "# Trains {model} as predicted for {cluster}: {step} a step (90 %: {low} to {high}).\n"
      "# Submit with sbatch; --partition and --account, where your site wants them, go on its command line.\n"
      "#SBATCH --job-name={name}\n"
      "#SBATCH --nodes={nodes}\n"
      "#SBATCH --ntasks={tasks}\n"
      "#SBATCH --ntasks-per-node={per_node}\n"
      "#SBATCH --cpus-per-task=1\n"
      "#SBATCH --time={limit}\n"
      "set -euo pipefail\n"
      "result={name}-${{SLURM_JOB_ID:-local}}.json\n"
      "srun --mpi=pmix sibyl-train{command} --steps={steps} \\\n"
      "  --threads=\"${{SLURM_CPUS_PER_TASK:-1}}\" --json > \"$result\"\n"
      "echo \"measured: $result\"\n",
      fmt::arg("model", line(report.model)), fmt::arg("cluster", line(report.cluster)),
      fmt::arg("step", to_string(p.step_time)), fmt::arg("low", to_string(p.interval_low)),
      fmt::arg("high", to_string(p.interval_high)), fmt::arg("name", job_name(report.model)),
      fmt::arg("nodes", p.nodes), fmt::arg("tasks", p.devices),
      fmt::arg("per_node", (p.devices + p.nodes - 1) / p.nodes), fmt::arg("limit", time_limit(p.step_time, steps)),
      fmt::arg("command", command), fmt::arg("steps", steps));
}

}  // namespace sibyl
