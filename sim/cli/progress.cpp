#include "cli/progress.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace tw::cli {

Progress::Progress(const Console& console, std::string what)
    : what_(std::move(what)), active_(!console.quiet && console.stderr_is_terminal()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);  // the bar leaves no trace
}

std::string Progress::line(const std::string& what, size_t done, size_t all, double elapsed_s, size_t before) {
  constexpr size_t width = 30;
  const size_t filled = all + before == 0 ? 0 : width * (done + before) / (all + before);
  std::string text = fmt::format("{} [{}{}] {}/{}", what, std::string(filled, '#'), std::string(width - filled, '.'),
                                 done + before, all + before);
  if (done == 0 && elapsed_s >= 1) {
    text += fmt::format(", {:.0f} s so far", elapsed_s);
  } else if (done > 0 && done < all) {
    const double left_s = elapsed_s / static_cast<double>(done) * static_cast<double>(all - done);
    text += left_s < 120 ? fmt::format(", {:.0f} s left", left_s) : fmt::format(", {:.0f} min left", left_s / 60);
  }
  return text;
}

void Progress::update(size_t done, size_t all, size_t before) {
  if (!active_) return;
  const auto now = Clock::now();
  const std::chrono::duration<double> elapsed = now - start_, since = now - drawn_;
  if (elapsed.count() < 2 || since.count() < 0.1) return;
  drawn_ = now;
  shown_ = true;
  std::fputs(("\r\033[K" + line(what_, done, all, elapsed.count(), before)).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace tw::cli
