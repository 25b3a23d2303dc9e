#include "oracle/cli/verbs.h"

#include <fmt/format.h>

namespace sibyl::cli {

const std::vector<Verb>& all_verbs() {
  static const std::vector<Verb> verbs = {inspect_verb(),   predict_verb(),     scale_verb(),    search_verb(),
                                          whatif_verb(),    compare_verb(),     memory_verb(),   trace_verb(),
                                          export_verb(),    zoo_verb(),         clusters_verb(), import_verb(),
                                          kernels_verb(),   collectives_verb(), explain_verb(),  doctor_verb(),
                                          calibrate_verb(), train_verb(),       validate_verb(), gui_verb()};
  return verbs;
}

std::string general_help() {
  std::string text =
      "Examples:\n"
      "  sibyl predict zoo:resnet50 --cluster abci-v100 --devices 64 --batch 64/device\n"
      "      step time, throughput, memory, bottleneck and error bar of training ResNet-50 on 64 GPUs\n"
      "  sibyl scale model.onnx --cluster dgx-a100 --devices 1..1024\n"
      "      the same for 1, 2, 4 … 1024 devices\n"
      "\nUsage: sibyl VERB [OPTIONS]\n"
      "How fast will this model train on that cluster, does it fit, and what holds it back?\n\nVerbs:\n";
  for (const Verb& verb : all_verbs()) text += fmt::format("  {:<11} {}\n", verb.command.name, verb.command.summary);
  return text +
         "\n`sibyl VERB --help` shows the options of each. Also: --version; completion (prints a script for bash); "
         "manual (prints sibyl(1)).\n"
         "Exit codes: 0 done, 2 usage, 3 bad input, 4 infeasible, 5 validation failed, 130 interrupted.\n";
}

std::string bash_completion() {
  std::string verbs, cases;
  for (const Verb& verb : all_verbs()) {
    verbs += verb.command.name + " ";
    std::string names, choices;
    for (const Option& option : verb.command.options) {
      names += option.name + " ";
      if (!option.choices.empty())
        choices += fmt::format("          {}) words='{}' ;;\n", option.name, fmt::join(option.choices, " "));
    }
    cases += fmt::format(
        "    {})\n      case \"$previous\" in\n{}          --cluster) words=\"$(sibyl clusters --csv 2>/dev/null | "
        "tail -n +2 | cut -d, -f1)\" ;;\n"
        "          *) [[ $current == -* ]] && words='{}--help' ;;\n      esac ;;\n",
        verb.command.name, choices, names);
  }
  return fmt::format(
      "# bash completion for sibyl\n_sibyl() {{\n  local current=${{COMP_WORDS[COMP_CWORD]}} "
      "previous=${{COMP_WORDS[COMP_CWORD-1]}} words=''\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n    COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n    return\n  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n}}\ncomplete -o filenames -F "
      "_sibyl sibyl\n",
      verbs, cases);
}

namespace {

// In troff a backslash and a hyphen are commands, and so is a full stop or a quote that begins a line.
std::string troff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string manual_page() {
  std::string text = ".TH SIBYL 1 \"\" \"sibyl " SIBYL_VERSION
                     "\" \"User Commands\"\n.SH NAME\nsibyl \\- predict how fast a model trains on a cluster\n"
                     ".SH SYNOPSIS\n.B sibyl\n.I VERB\n[\\fIOPTIONS\\fR]\n.SH VERBS\n";
  for (const Verb& verb : all_verbs()) {
    const Command& c = verb.command;
    text += fmt::format(".SS {} {}\n{}.\n", c.name, troff(c.operands), troff(c.summary));
    for (const Option& option : c.options)
      text += fmt::format(".TP\n.B {} {}\n{}\n", troff(option.name), troff(option.value), troff(option.help));
    for (const Example& example : c.examples)
      text += fmt::format(".PP\n{}:\n.PP\n.nf\n    {}\n.fi\n", troff(example.says), troff(example.command));
  }
  return text +
         ".SH EXIT STATUS\n0 done, 2 usage, 3 bad input, 4 infeasible, 5 validation failed, 130 interrupted.\n"
         ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colour, whatever the terminal can do\n";
}

}  // namespace sibyl::cli
