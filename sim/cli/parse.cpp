// The only file that knows CLI11: from declared options to a parsed command line, and from its errors to ours.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "core/text.hpp"
#include "core/version.hpp"

namespace tw::cli {
namespace {

std::string bounds(const Range& range) {
  if (std::isfinite(range.high)) return fmt::format("{} to {}", range.low, range.high);
  return fmt::format("{} {}", range.above_low ? "above" : "at least", range.low);
}

template <class Number>
void read_number(Number& out, const std::string& text, const Option& option) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size();
  const auto v = static_cast<double>(value);
  good = good && std::isfinite(v) && v <= option.range.high && v >= option.range.low &&
         !(option.range.above_low && v == option.range.low);
  if (!good)
    throw CLI::ValidationError(
        option.names, fmt::format("\"{}\" is not {} ({})", printable(text, 60),
                                  std::is_integral_v<Number> ? "a whole number" : "a number", bounds(option.range)));
  out = value;
}

// Help that keeps to the terminal: meanings are wrapped at words beside their options, and so are examples.
class Help : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    constexpr size_t column = 28;
    std::string name = "  " + make_option_name(option, positional) + make_option_opts(option);
    name += name.size() + 2 > column ? "\n" + std::string(column, ' ') : std::string(column - name.size(), ' ');
    std::string meaning = wrapped(make_option_desc(option), kTerminalWidth - column);
    for (size_t at = 0; (at = meaning.find('\n', at)) != std::string::npos; at += column + 1)
      meaning.insert(at + 1, column, ' ');
    return name + meaning + "\n";
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    constexpr size_t column = 14;
    std::string meaning = sub->get_description();
    std::replace(meaning.begin(), meaning.end(), '\n', ' ');
    meaning = wrapped(meaning, kTerminalWidth - column);
    for (size_t at = 0; (at = meaning.find('\n', at)) != std::string::npos; at += column + 1)
      meaning.insert(at + 1, column, ' ');
    return fmt::format("  {:<{}}{}\n", sub->get_name(), column - 2, meaning);
  }
};

void declare(CLI::App& app, const Option& option) {
  CLI::Option* added = nullptr;
  if (bool* const* flag = std::get_if<bool*>(&option.target)) {
    added = app.add_flag(option.names, **flag, option.meaning);
  } else if (std::string* const* text = std::get_if<std::string*>(&option.target)) {
    added = app.add_option(option.names, **text, option.meaning);
  } else if (std::vector<std::string>* const* texts = std::get_if<std::vector<std::string>*>(&option.target)) {
    added = app.add_option(option.names, **texts, option.meaning);
    if (option.names.front() == '-' && option.range.low >= 2)
      added->expected(static_cast<int>(option.range.low));  // --route A B
    else if (option.names.front() == '-')
      added->expected(1)->take_all();  // --set a --set b
  } else if (const Reader* reader = std::get_if<Reader>(&option.target)) {
    const auto words = [option, read = *reader](const std::vector<std::string>& given) {
      for (const std::string& word : given)
        if (const std::string problem = read(word); !problem.empty()) throw CLI::ValidationError(option.names, problem);
    };
    added = app.add_option_function<std::vector<std::string>>(option.names, words, option.meaning);
    added->expected(1)->take_all();
  } else {
    const auto number = [option](const std::string& given) {
      if (uint64_t* const* whole = std::get_if<uint64_t*>(&option.target)) read_number(**whole, given, option);
      if (int* const* small = std::get_if<int*>(&option.target)) read_number(**small, given, option);
      if (double* const* real = std::get_if<double*>(&option.target)) read_number(**real, given, option);
    };
    added = app.add_option_function<std::string>(option.names, number, option.meaning);
  }
  if (!option.value.empty()) added->type_name(option.value);
  if (option.required) added->required();
}

// Names a user may have meant, of the options of a command or of the program.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// One line: what is wrong, and where to look.
Parsed refused(const std::string& program, std::string why) {
  std::replace(why.begin(), why.end(), '\n', ' ');
  return {nullptr, fmt::format("{}: {}; see {} --help\n", program, printable(why, 400), program), true,
          ExitCode::bad_input};
}

std::string unknown_argument(const std::string& word, const CLI::App& app) {
  if (word.size() < 2 || word.front() != '-') return fmt::format("\"{}\" is one argument too many", word);
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("unknown option {}; {}", name, suggest(name, option_names(app), 24));
}

}  // namespace

Parsed parse(const std::vector<Command>& known, const std::vector<std::string>& arguments) {
  CLI::App app{
      "TrainWatt predicts a distributed training run: its time, its power from GPU to\ngrid, its energy and carbon.",
      "trainwatt"};
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", std::string("trainwatt ") + version());
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 done, 1 a bug of ours, 2 bad input, 3 valid but does not fit,\n"
      "4 simulation failed, 130 interrupted. Help: trainwatt SUBCOMMAND --help");
  std::vector<std::string> names;
  for (const Command& command : known) {
    names.push_back(command.name);
    CLI::App* sub = app.add_subcommand(command.name, wrapped(command.summary));
    for (const Option& option : command.options) declare(*sub, option);
    sub->footer("Examples:\n" + wrapped(command.examples));
  }
  if (arguments.empty()) return {nullptr, app.help(), true, ExitCode::bad_input};
  const std::string& first = arguments.front();
  if (first.empty() || first.front() != '-') {
    if (std::find(names.begin(), names.end(), first) == names.end())
      return refused("trainwatt", fmt::format("unknown subcommand \"{}\"; {}", first, suggest(first, names)));
  }
  CLI::App* sub = first.empty() || first.front() == '-' ? nullptr : app.get_subcommand(first);
  const std::string program = sub != nullptr ? "trainwatt " + first : "trainwatt";
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them reversed
  } catch (const CLI::CallForVersion&) {
    return {nullptr, std::string("trainwatt ") + version() + "\n", false, ExitCode::done};
  } catch (const CLI::CallForHelp&) {
    return {nullptr, sub != nullptr ? sub->help("trainwatt") : app.help(), false, ExitCode::done};
  } catch (const CLI::ExtrasError&) {
    const auto rest = app.remaining(true);
    return refused(program, rest.empty() ? "an argument is not understood"
                                         : unknown_argument(rest.front(), sub != nullptr ? *sub : app));
  } catch (const CLI::ParseError& error) {
    // A mistyped option is what made a required one missing.
    for (const std::string& word : app.remaining(true))
      if (word.size() > 1 && word.front() == '-')
        return refused(program, unknown_argument(word, sub != nullptr ? *sub : app));
    return refused(program, error.what());
  }
  for (const Command& command : known)
    if (sub != nullptr && command.name == first) return {&command, "", false, ExitCode::done};
  return refused("trainwatt", fmt::format("a subcommand is due; {}", suggest("", names)));
}

}  // namespace tw::cli
