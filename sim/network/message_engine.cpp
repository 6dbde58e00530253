#include "network/message_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "network/message_level.hpp"

namespace tw::network {
namespace {

class MessageEngine final : public Engine {
 public:
  MessageEngine(const Fabric& fabric, const CollectiveOptions& options, const std::vector<LoadClass>& classes,
                const std::vector<ClassParts>& parts, int chunks)
      : plain_(classes.size(), -1), parts_(classes.size()) {
    for (size_t k = 0; k < classes.size(); ++k) {
      if (k >= parts.size() || parts[k].empty()) {
        plain_[k] = static_cast<int>(sent_.size());
        sent_.push_back(classes[k]);
        continue;
      }
      for (const ClassPart& part : parts[k]) add(fabric, options, part, k, chunks);
    }
    known_.clear();
    std::vector<LoadClass> renumbered = std::move(sent_);
    const std::vector<Link> links = engine_links(fabric, renumbered);
    inner_ = open_engine(links, renumbered);
  }

  double now_s() const override { return inner_->now_s(); }
  void at(double t_s, std::function<void()> what) override { inner_->at(t_s, std::move(what)); }
  void run() override { inner_->run(); }
  void start(int load_class, double bytes, std::function<void()> done) override {
    const auto k = static_cast<size_t>(load_class);
    if (plain_[k] >= 0) return inner_->start(plain_[k], bytes, std::move(done));
    auto turn = std::make_shared<Turn>();
    turn->load_class = k, turn->bytes = bytes, turn->done = std::move(done);
    next(turn);
  }

 private:
  struct Part {
    std::vector<MessageProgram> programs;  // of one byte, a group each; classes are those of `inner_`
    double share = 1;
    int times = 1;
    size_t messages = 0;
  };
  struct Turn {
    size_t load_class = 0, part = 0;
    int time = 0;
    double bytes = 0;
    size_t left = 0;                      // messages on their way or to come
    std::vector<std::vector<int>> waits;  // [program][message]
    std::function<void()> done;
  };
  using Shared = std::shared_ptr<Turn>;

  void add(const Fabric& fabric, const CollectiveOptions& options, const ClassPart& part, size_t k, int chunks) {
    CollectiveOptions named = options;
    named.algorithm = part.algorithm;
    named.protocol = part.protocol;
    Part made{{}, part.share, part.times, 0};
    for (const auto& ranks : part.groups) {
      MessageProgram program = message_program(fabric, part.operation, ranks, 1, named, chunks);
      std::vector<int> place;
      for (LoadClass& c : program.classes) place.push_back(class_of(std::move(c)));
      for (Message& m : program.messages) m.load_class = place[static_cast<size_t>(m.load_class)];
      program.classes.clear();
      made.messages += program.messages.size();
      total_ += program.messages.size();
      if (total_ > kMostMessages)
        throw DoesNotFit(
            fmt::format("level 3 sends every message, and the exchanges of this step are more than {} of them: fewer "
                        "GPUs, or --level 2",
                        kMostMessages));
      made.programs.push_back(std::move(program));
    }
    parts_[k].push_back(std::move(made));
  }

  // Messages between the same ranks over the same links are one class, whatever they belong to.
  int class_of(LoadClass c) {
    std::vector<std::pair<int, double>> key{{-1, c.latency_s}};
    for (const LinkUse& use : c.uses) key.emplace_back(use.link, use.weight);
    const auto [it, fresh] = known_.try_emplace(std::move(key), static_cast<int>(sent_.size()));
    if (fresh) sent_.push_back(std::move(c));
    return it->second;
  }

  void next(const Shared& turn) {
    const std::vector<Part>& parts = parts_[turn->load_class];
    if (turn->part == parts.size()) return turn->done();
    const Part& part = parts[turn->part];
    if (turn->time == part.times || part.messages == 0) {
      turn->time = 0;
      ++turn->part;
      return next(turn);
    }
    ++turn->time;
    turn->left = part.messages;
    turn->waits.clear();
    double begin_s = 0;
    for (const MessageProgram& p : part.programs) {
      begin_s = std::max(begin_s, p.begin_s);
      turn->waits.emplace_back();
      for (const Message& m : p.messages) turn->waits.back().push_back(m.waits_for);
    }
    inner_->at(now_s() + begin_s, [this, turn] {
      const Part& here = parts_[turn->load_class][turn->part];
      for (size_t p = 0; p < here.programs.size(); ++p)
        for (size_t i = 0; i < here.programs[p].messages.size(); ++i)
          if (here.programs[p].messages[i].waits_for == 0) send(turn, p, i);
    });
  }

  void send(const Shared& turn, size_t program, size_t message) {
    const Part& part = parts_[turn->load_class][turn->part];
    const Message& m = part.programs[program].messages[message];
    inner_->start(m.load_class, m.bytes * turn->bytes * part.share, [this, turn, program, message] {
      const Part& here = parts_[turn->load_class][turn->part];
      for (const int then : here.programs[program].messages[message].then)
        if (--turn->waits[program][static_cast<size_t>(then)] == 0) send(turn, program, static_cast<size_t>(then));
      if (--turn->left == 0) next(turn);
    });
  }

  std::vector<int> plain_;                // class of `inner_`, or -1
  std::vector<std::vector<Part>> parts_;  // [class]
  std::vector<LoadClass> sent_;
  std::map<std::vector<std::pair<int, double>>, int> known_;
  size_t total_ = 0;
  std::unique_ptr<Engine> inner_;
};

}  // namespace

std::unique_ptr<Engine> message_engine(const Fabric& fabric, const CollectiveOptions& options,
                                       const std::vector<LoadClass>& classes, const std::vector<ClassParts>& parts,
                                       int chunks) {
  return std::make_unique<MessageEngine>(fabric, options, classes, parts, chunks);
}

}  // namespace tw::network
