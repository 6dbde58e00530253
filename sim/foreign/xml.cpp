#include "foreign/xml.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "foreign/lines.hpp"

namespace tw::foreign {
namespace {

constexpr size_t kDeepest = 64;

struct Problem {
  std::string what, allowed;
};

class XmlReader {
 public:
  explicit XmlReader(const std::string& text) : text_(text) {}
  size_t line() const { return line_; }

  XmlElement document() {
    std::vector<XmlElement> open(1);
    while (true) {
      skip_to('<');
      if (at_ >= text_.size()) break;
      if (taken("<?") || taken("<!DOCTYPE")) {
        past(">", "a declaration");
      } else if (taken("<!--")) {
        past("-->", "a comment");
      } else if (taken("</")) {
        const std::string name = word();
        skip_blanks();
        if (open.size() < 2 || open.back().name != name)
          throw Problem{fmt::format("</{}> closes nothing that is open", name),
                        open.size() < 2 ? "" : fmt::format("</{}>", open.back().name)};
        expect('>');
        close(open);
      } else {
        expect('<');
        open.push_back(element());
        if (open.size() > kDeepest) throw Problem{fmt::format("nested beyond {} levels", kDeepest), ""};
        if (taken("/>"))
          close(open);
        else
          expect('>');
      }
    }
    if (open.size() > 1)
      throw Problem{fmt::format("<{}> of line {} is not closed", open.back().name, open.back().line), ""};
    if (open.front().children.size() != 1)
      throw Problem{fmt::format("{} outermost elements", open.front().children.size()), "one"};
    return std::move(open.front().children.front());
  }

 private:
  static void close(std::vector<XmlElement>& open) {
    XmlElement done = std::move(open.back());
    open.pop_back();
    open.back().children.push_back(std::move(done));
  }
  void step() {
    if (text_[at_++] == '\n') ++line_;
  }
  void skip_to(char c) {
    while (at_ < text_.size() && text_[at_] != c) step();
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      step();
  }
  bool taken(std::string_view part) {
    if (text_.compare(at_, part.size(), part) != 0) return false;
    at_ += part.size();
    return true;
  }
  void past(std::string_view end, const char* what) {
    const size_t found = text_.find(end, at_);
    if (found == std::string::npos) throw Problem{fmt::format("{} does not end", what), ""};
    while (at_ < found + end.size()) step();
  }
  void expect(char c) {
    if (at_ >= text_.size()) throw Problem{fmt::format("the file ends where '{}' is due", c), ""};
    if (text_[at_] != c) throw Problem{fmt::format("'{}' where '{}' is due", text_[at_], c), ""};
    ++at_;
  }
  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' ||
                                  text_[at_] == '-' || text_[at_] == '.' || text_[at_] == ':'))
      ++at_;
    if (at_ == begin) throw Problem{"a name is due", "such as <gpu dev=\"0\"/>"};
    return text_.substr(begin, at_ - begin);
  }
  XmlElement element() {
    XmlElement e;
    e.line = line_;
    e.name = word();
    while (true) {
      skip_blanks();
      if (at_ >= text_.size()) throw Problem{fmt::format("<{}> of line {} does not end", e.name, e.line), ""};
      if (text_[at_] == '>' || text_[at_] == '/') return e;
      std::string key = word();
      skip_blanks();
      expect('=');
      skip_blanks();
      e.attributes.emplace_back(std::move(key), value());
    }
  }
  std::string value() {
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\''))
      throw Problem{"the value of an attribute is not quoted", "such as speed=\"400000\""};
    const char quote = text_[at_++];
    const size_t end = text_.find_first_of(std::string(1, quote) + "<\n", at_);
    if (end == std::string::npos || text_[end] != quote) throw Problem{"a quote is not closed", ""};
    std::string raw = text_.substr(at_, end - at_);
    at_ = end + 1;
    for (const auto& [name, c] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
      for (size_t i = 0; (i = raw.find(name, i)) != std::string::npos; ++i)
        raw.replace(i, std::string_view(name).size(), c);
    return raw;
  }

  const std::string& text_;
  size_t at_ = 0, line_ = 1;
};

}  // namespace

std::string XmlElement::attribute(const std::string& key) const {
  for (const auto& [name, value] : attributes)
    if (name == key) return value;
  return "";
}

std::optional<XmlElement> parse_xml(const Source& source, Faults& faults) {
  XmlReader reader(source.text);
  try {
    return reader.document();
  } catch (const Problem& p) {
    faults.add({source.name, line_place(reader.line()), p.what, p.allowed});
    return std::nullopt;
  }
}

}  // namespace tw::foreign
