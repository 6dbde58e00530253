// Who is at fault decides the exit code: the user's input (2), a valid input that does not fit (3), a simulation that
// did not complete (4), or we ourselves (1, everything else).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tw {

enum class ExitCode { done = 0, bug = 1, bad_input = 2, does_not_fit = 3, simulation_failed = 4, interrupted = 130 };

// One fault of one input: where, what, and what would be allowed.
struct Fault {
  std::string file;          // as the user named it
  std::string place;         // JSON pointer, or "line 3, column 7"
  std::string what;          // "unknown key"
  std::string allowed;       // "did you mean \"layers\"?"; may be empty
  std::string text() const;  // "file: place: what; allowed"
};

// All faults of all inputs at once.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Fault> faults);
  const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

// The input is valid, but memory, a power rating or the like forbids it.
class DoesNotFit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The engine stopped before every started operation had finished.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Collects faults; throws them together.
class Faults {
 public:
  void add(Fault fault);
  bool empty() const { return list_.empty(); }
  size_t size() const { return list_.size(); }
  void throw_if_any() const;
  const std::vector<Fault>& list() const { return list_; }

 private:
  std::vector<Fault> list_;
};

}  // namespace tw
