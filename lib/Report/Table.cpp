//===- Table.cpp - Aligned columns for terminals --------------------------===//

#include "shardc/Report/Table.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

/// Before each row, and between columns.
static constexpr size_t kIndent = 2, kGap = 2;

/// Flexible columns do not get narrower.
static constexpr size_t kLeastWidth = 8;

void shardc::paint(llvm::raw_ostream &os, llvm::StringRef text, Style style,
                   bool colour) {
  static constexpr const char *kCodes[] = {"", "1", "2", "1;31", "33"};
  if (!colour || style == Style::Plain || text.empty()) {
    os << text;
    return;
  }
  os << "\033[" << kCodes[size_t(style)] << 'm' << text << "\033[0m";
}

std::string shardc::truncate(llvm::StringRef text, size_t width) {
  if (text.size() <= width)
    return text.str();
  return text.take_front(width > 2 ? width - 2 : 0).str() + "..";
}

void shardc::printWrapped(llvm::raw_ostream &os, llvm::StringRef text,
                          size_t indent) {
  size_t column = 0;
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [next, after] = rest.split(' ');
    std::string word = truncate(next, kReportWidth - indent);
    if (column > 0 && column + 1 + word.size() > kReportWidth) {
      os << '\n';
      column = 0;
    }
    size_t space = column == 0 ? indent : 1;
    os.indent(space) << word;
    column += space + word.size();
    rest = after;
  }
  os << '\n';
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> result(columns.size(), 0);
  for (const std::vector<Cell> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      if (!row[i].runsOn)
        result[i] =
            std::max(result[i], std::min(row[i].text.size(), columns[i].limit));
  size_t heading = rows.front().front().text.size();
  result.front() =
      std::max(result.front(), heading - std::min(heading, kIndent));
  size_t total = kIndent + kGap * (columns.size() - 1);
  for (size_t width : result)
    total += width;
  for (; total > kReportWidth; --total) {
    size_t *widest = nullptr;
    for (auto [width, column] : llvm::zip_equal(result, columns))
      if (column.flexible && width > kLeastWidth &&
          (!widest || width > *widest))
        widest = &width;
    if (!widest)
      break;
    --*widest;
  }
  return result;
}

Table::Table(std::vector<Column> columns, std::vector<std::string> heading)
    : columns(std::move(columns)) {
  std::vector<Cell> row;
  for (std::string &text : heading)
    row.push_back({std::move(text), row.empty() ? Style::Bold : Style::Dim});
  rows.push_back(std::move(row));
}

/// Spaces are written when text follows, so that no line ends in them.
void Table::printRow(llvm::raw_ostream &os, const std::vector<Cell> &row,
                     llvm::ArrayRef<size_t> width, bool colour) const {
  size_t pending = 0, left = kIndent;
  for (size_t i = 0; i < row.size(); ++i) {
    size_t room = row[i].runsOn ? kReportWidth - left : width[i];
    left += width[i] + kGap;
    std::string text = truncate(row[i].text, room);
    size_t padding = room - text.size();
    bool right = columns[i].align == Column::Right && !row[i].runsOn;
    if (!text.empty()) {
      os.indent(pending + (right ? padding : 0));
      paint(os, text, row[i].style, colour);
      pending = right ? 0 : padding;
    } else {
      pending += padding;
    }
    pending += kGap;
  }
  os << '\n';
}

void Table::print(llvm::raw_ostream &os, bool colour) const {
  std::vector<size_t> width = widths();
  // The heading stands out by as much as the rows are indented.
  std::vector<size_t> headingWidth = width;
  headingWidth.front() += kIndent;
  printRow(os, rows.front(), headingWidth, colour);
  for (const std::vector<Cell> &row : llvm::drop_begin(rows)) {
    os.indent(kIndent);
    printRow(os, row, width, colour);
  }
}
