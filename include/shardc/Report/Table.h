//===- Table.h - Aligned columns for terminals -----------------*- C++ -*-===//

#ifndef SHARDC_REPORT_TABLE_H
#define SHARDC_REPORT_TABLE_H

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace shardc {

/// No line of the report is wider.
inline constexpr size_t kReportWidth = 120;

enum class Style : uint8_t { Plain, Bold, Dim, Red, Yellow };

/// Writes `text` in a style, if colours are on.
void paint(llvm::raw_ostream &os, llvm::StringRef text, Style style,
           bool colour);

struct Cell {
  std::string text;
  Style style = Style::Plain;
  /// The last cell of its row, which runs on over the columns to its right.
  bool runsOn = false;

  Cell(std::string text = "", Style style = Style::Plain, bool runsOn = false)
      : text(std::move(text)), style(style), runsOn(runsOn) {}
  Cell(const char *text) : text(text) {}
};

/// A heading row, then indented rows, whose columns are as wide as their widest
/// cell; wider text than a column's limit ends in `..`. Flexible columns share
/// what the others leave of kReportWidth.
class Table {
public:
  struct Column {
    enum Align : uint8_t { Left, Right } align = Left;
    size_t limit = kReportWidth;
    bool flexible = false;
  };

  /// The heading's first cell is bold, the others are dim.
  Table(std::vector<Column> columns, std::vector<std::string> heading);

  /// Missing cells at the end are empty.
  void addRow(std::vector<Cell> cells) { rows.push_back(std::move(cells)); }
  void print(llvm::raw_ostream &os, bool colour) const;

private:
  std::vector<size_t> widths() const;
  void printRow(llvm::raw_ostream &os, const std::vector<Cell> &row,
                llvm::ArrayRef<size_t> width, bool colour) const;

  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// `text`, or its beginning and `..` if it is longer than `width`.
std::string truncate(llvm::StringRef text, size_t width);

/// Prints `text` in lines of at most kReportWidth, broken at spaces, each after
/// `indent` spaces.
void printWrapped(llvm::raw_ostream &os, llvm::StringRef text, size_t indent);

} // namespace shardc

#endif // SHARDC_REPORT_TABLE_H
