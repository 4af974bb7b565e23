// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <string_view>

#include "base/document.hpp"
#include "base/failure.hpp"
#include "cli/exit_status.hpp"
#include "cli/suggestion.hpp"

namespace artune {
namespace {

constexpr int kHelpColumn = 34;

std::string indented(std::string_view text) {
  std::string result = "  ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known, const std::string& help) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "; see '" + help + "'" : "; did you mean '" + nearest + "'?";
}

std::vector<std::string> flags_of(const CLI::App& verb) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

Error unexpected_word(const CLI::App& verb, const std::string& word) {
  const std::string help = "ar-tune " + verb.get_name() + " --help";
  if (word.size() < 2 || word.front() != '-') return {Reason::usage, verb.get_name() + ": unexpected word '" + word + "'; see '" + help + "'"};
  const std::string flag = word.substr(0, word.find('='));
  return {Reason::usage, verb.get_name() + ": unknown flag '" + flag + "'" + did_you_mean(flag, flags_of(verb), help)};
}

class CommandLine {
 public:
  CommandLine(const std::vector<Verb>& verbs, std::ostream& out, std::ostream& err)
      : verbs_(verbs), out_(out), context_(out, err), app_("Finds out how GPUs really talk and makes all-reduce as fast as that", "ar-tune") {
    std::string examples = "Examples:";
    for (const Verb& verb : verbs) {
      CLI::App* sub = app_.add_subcommand(verb.name, verb.summary);
      sub->group("Verbs");
      sub->set_help_flag("-h,--help", "print this page and exit");
      sub->allow_extras();  // told by us, with a suggestion
      sub->get_formatter()->column_width(kHelpColumn);
      sub->footer("Example:\n" + indented(verb.example));
      add_output_options(*sub, context_.output);
      runners_[verb.name] = verb.configure(*sub, context_);
      examples += "\n" + indented(verb.example);
    }
    app_.get_formatter()->label("SUBCOMMAND", "VERB");
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    app_.footer(examples);
    app_.set_version_flag("--version", tool_name(), "print the version and exit");
    app_.set_help_flag("-h,--help", "print this page and exit");
  }

  int run(int argc, const char* const* argv) {
    const std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& asked) {
      return app_.exit(asked, out_, out_);  // help or version
    } catch (const CLI::ParseError& error) {
      // Parsing stopped somewhere: whether --json was meant is read from the words themselves.
      context_.output.json = std::find(words.begin(), words.end(), "--json") != words.end();
      return context_.report({Reason::usage, verb_name() + error.what()});
    }
    if (const std::optional<Error> error = check_words()) return context_.report(*error);
    return run_verb(app_.get_subcommands().front()->get_name());
  }

 private:
  std::string verb_name() const {
    const auto chosen = app_.get_subcommands();
    return chosen.empty() ? "" : chosen.front()->get_name() + ": ";
  }

  std::optional<Error> check_words() const {
    std::vector<std::string> names;
    for (const Verb& verb : verbs_) names.emplace_back(verb.name);
    const auto chosen = app_.get_subcommands();
    const std::vector<std::string> extra = app_.remaining();
    if (chosen.empty() && extra.empty()) return Error{Reason::usage, "no verb given; see 'ar-tune --help'"};
    if (chosen.empty()) {
      const bool flag = extra.front().front() == '-';
      return Error{Reason::usage, (flag ? "unknown flag '" : "unknown verb '") + extra.front() + "'" +
                                      did_you_mean(extra.front(), flag ? std::vector<std::string>{"--help", "--version"} : names, "ar-tune --help")};
    }
    if (!extra.empty()) return Error{Reason::usage, "'" + extra.front() + "' stands before the verb; write it after '" + chosen.front()->get_name() + "'"};
    if (const auto left = chosen.front()->remaining(); !left.empty()) return unexpected_word(*chosen.front(), left.front());
    return std::nullopt;
  }

  int run_verb(const std::string& name) {
    try {
      const Status done = runners_.at(name)();
      return done ? kExitOk : context_.report(done.error());
    } catch (const std::exception& error) {  // Failure and all that is no Error: not the user's doing
      return context_.report({Reason::internal, error.what()});
    }
  }

  const std::vector<Verb>& verbs_;
  std::ostream& out_;
  CliContext context_;
  CLI::App app_;
  std::map<std::string, std::function<Status()>> runners_;
};

}  // namespace

int run_command_line(int argc, const char* const* argv, const std::vector<Verb>& verbs, std::ostream& out, std::ostream& err) {
  return CommandLine(verbs, out, err).run(argc, argv);
}

}  // namespace artune
