#include "oracle/validate/published/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sibyl::published {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
  }

  // Nothing at the end of the text.
  Result<std::optional<CsvRecord>> record() {
    skip_empty_lines();
    if (at_ == text_.size()) return std::nullopt;
    CsvRecord record;
    record.line = line_;
    while (true) {
      SIBYL_TRY(std::string field, starts_quoted() ? quoted() : plain());
      record.fields.push_back(std::move(field));
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      take_line_end();
      return record;
    }
  }

 private:
  [[nodiscard]] bool starts_quoted() const { return at_ < text_.size() && text_[at_] == '"'; }
  [[nodiscard]] std::string where(int line) const { return fmt::format("{}:{}", file_, line); }

  // CR LF, LF, or a lone CR; false where none is there.
  bool take_line_end() {
    if (at_ == text_.size()) return false;
    if (text_[at_] == '\r') {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    } else if (text_[at_] == '\n') {
      ++at_;
    } else {
      return false;
    }
    ++line_;
    return true;
  }
  void skip_empty_lines() {
    while (take_line_end()) {
    }
  }

  Result<std::string> plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string field(text_.substr(at_, end - at_));
    if (field.find('"') != std::string::npos)
      return fail("a quote stands inside a field that does not begin with one", where(line_),
                  "put the whole field into quotes, and double those inside it");
    at_ = end;
    return field;
  }

  Result<std::string> quoted() {
    const int begun = line_;
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += text_[at_++];
      } else {
        ++at_;
        if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\r' && text_[at_] != '\n')
          return fail("text follows a closing quote", where(line_), "double the quotes inside a quoted field");
        return field;
      }
    }
    return fail("a quote is opened and never closed", where(begun));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Result<Csv> parse_csv(std::string_view text, const std::string& file) {
  Reader reader(text, file);
  Csv csv;
  SIBYL_TRY(std::optional<CsvRecord> record, reader.record());
  if (!record) return fail("is empty", file, "its first line names the columns");
  csv.header = std::move(record->fields);
  while (true) {
    SIBYL_TRY(record, reader.record());
    if (!record) return csv;
    if (record->fields.size() != csv.header.size())
      return fail(fmt::format("has {} fields, and there are {} columns", record->fields.size(), csv.header.size()),
                  fmt::format("{}:{}", file, record->line));
    csv.records.push_back(std::move(*record));
  }
}

}  // namespace sibyl::published
