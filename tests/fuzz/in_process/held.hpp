// What every answer of the program is held to; held.py says the same of whole processes.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace tw::fuzz {

using Wrong = std::optional<std::pair<std::string, std::string>>;  // class, detail

// Exit codes of the contract, a line that says why, no words that only programmers know.
Wrong broken_answer(int code, const std::string& out, const std::string& err);

// Of a result of run, hall, topology or collective as JSON: numbers that cannot be, parts that do not add up.
Wrong impossible(const std::string& text);

}  // namespace tw::fuzz
