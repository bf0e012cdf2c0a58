#include "plan/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>

#include "base/output.h"
#include "plan/svg.h"

namespace
{

constexpr int kMargin = 14;
constexpr int kPadding = 7;     /* within a block */
constexpr int kTitle = 58;      /* height of the title and the legend */
constexpr int kHeader = 20;     /* height of a server's name */
constexpr int kSums = 21;       /* height of its number of shards, their size and the bar */
constexpr int kGap = 3;         /* between cells */
constexpr int kMostWide = 1500; /* width of the picture */
constexpr int kLegendWidth = 800;
constexpr int kLeastBlock = 130;
constexpr std::size_t kLabelled = 300; /* so many cells have room for the numbers of shards */

/* Sizes of shards as parts of the median: the planner's empty ones, and from small to large.
 * Relative, because a fleet of small shards would have one colour on a scale of bytes. */
constexpr std::array<double, 5> kSteps = {0.1, 0.5, 1, 2, 10};

const char* const kStyle = R"(  text { font-family: sans-serif; font-size: 11px; fill: #1f2328 }
  .title { font-size: 15px; font-weight: bold }
  .name { font-size: 12px; font-weight: bold }
  .block { fill: #f6f8fa; stroke: #8c959f }
  .s0 { fill: #ffffff; stroke: #b8c0c8; stroke-width: .7 }
  .s1 { fill: #cfe3f5 } .s2 { fill: #9cc7ea } .s3 { fill: #5ba0d8 } .s4 { fill: #2a72b5 } .s5 { fill: #0c3f75 }
  .s4-text, .s5-text { fill: #ffffff }
  .moves { stroke: #e8590c; stroke-width: 2 }
  .comes { fill: none; stroke: #e8590c; stroke-width: 1.2; stroke-dasharray: 2 1.2 }
  .now { fill: #6e7781 } .after { fill: #e8590c }
)";

/* Leaves out the middle, because names of servers differ at the beginning (host) or at the end
 * (database). The cut is between characters of UTF-8, not within one. */
std::string shortened(const std::string& text, std::size_t length)
{
    std::vector<std::string> characters;
    for (const char c : text)
        if ((c & 0xC0) == 0x80 && !characters.empty())
            characters.back() += c;
        else
            characters.emplace_back(1, c);
    if (characters.size() > length) {
        const auto middle = characters.begin() + static_cast<std::ptrdiff_t>(length / 2);
        const auto surplus = static_cast<std::ptrdiff_t>(characters.size() - length);
        *middle = "…";
        characters.erase(middle + 1, middle + 1 + surplus);
    }
    std::string shortened;
    for (const std::string& character : characters)
        shortened += character;
    return shortened;
}

/* Places are numbers of a distribution's list. */
using Places = std::vector<std::size_t>;

/* after has the shards that stay and those that come. Only its sums are drawn, so it is not
 * sorted. */
struct Block {
    Places there;
    Places coming;
    Places after;
};

std::int64_t size_of(const Distribution& distribution, const Places& shards)
{
    std::int64_t sum = 0;
    for (const std::size_t shard : shards)
        sum += distribution.shards[shard].size;
    return sum;
}

/* The largest shard of each block comes first. */
std::vector<Block> blocks_of(const Distribution& distribution,
                             const std::vector<PlannedMove>& moves,
                             const std::vector<bool>& is_moving)
{
    std::vector<Block> blocks(distribution.servers.size());
    for (const PlannedMove& move : moves) {
        blocks[move.to].coming.push_back(move.shard);
        blocks[move.to].after.push_back(move.shard);
    }
    for (std::size_t i = 0; i < distribution.shards.size(); i++) {
        Block& block = blocks[distribution.shards[i].server];
        block.there.push_back(i);
        if (!is_moving[i])
            block.after.push_back(i);
    }
    for (Block& block : blocks)
        for (Places* shards : {&block.there, &block.coming})
            std::stable_sort(shards->begin(), shards->end(), [&](auto one, auto two) {
                return distribution.shards[one].size > distribution.shards[two].size;
            });
    return blocks;
}

int root(std::size_t of)
{
    return static_cast<int>(std::ceil(std::sqrt(static_cast<double>(of))));
}

/* Sizes in pixels. All blocks are as large as the largest. */
struct Layout {
    int columns;  /* of blocks: about as many as rows */
    int rows;     /* of blocks */
    int per_line; /* cells in a line of a block */
    int cell_width;
    int cell_height;
    int header; /* above the cells */
    int block_width;
    int block_height;
};

Layout lay_out(const std::vector<Block>& blocks, bool is_labelled, bool has_moves)
{
    std::size_t most = 1;
    for (const Block& block : blocks)
        most = std::max(most, block.there.size() + block.coming.size());
    const auto count = static_cast<int>(blocks.size());
    Layout layout = {};
    layout.columns = count <= 3 ? count : std::min(root(blocks.size()), 8);
    layout.rows = (count + layout.columns - 1) / layout.columns;
    layout.cell_width = is_labelled ? 34 : 10;
    layout.cell_height = is_labelled ? 20 : 10;
    const int room = (kMostWide - kMargin) / layout.columns - kMargin - 2 * kPadding;
    const int least = (kLeastBlock + layout.cell_width - 1) / layout.cell_width;
    layout.per_line = std::min(room / layout.cell_width, std::max(root(most * 5 / 2), least));
    const int lines = (static_cast<int>(most) + layout.per_line - 1) / layout.per_line;
    layout.header = kHeader + (has_moves ? 2 : 1) * kSums;
    layout.block_width = layout.per_line * layout.cell_width + 2 * kPadding;
    layout.block_height = layout.header + lines * layout.cell_height + 2 * kPadding;
    return layout;
}

std::vector<bool> find_moving(const Distribution& distribution,
                              const std::vector<PlannedMove>& moves)
{
    std::vector<bool> is_moving(distribution.shards.size());
    for (const PlannedMove& move : moves)
        is_moving[move.shard] = true;
    return is_moving;
}

/* The median of the shards that have a size, as find_empty() takes it. 0 if there are none: then
 * all cells have the colour of an empty shard. */
double median_of(const Distribution& distribution)
{
    std::vector<std::int64_t> sizes;
    for (const PlacedShard& shard : distribution.shards)
        if (shard.size > 0)
            sizes.push_back(shard.size);
    std::sort(sizes.begin(), sizes.end());
    return sizes.empty() ? 0 : static_cast<double>(sizes[sizes.size() / 2]);
}

class Picture
{
public:
    Picture(const Distribution& distribution, const std::vector<PlannedMove>& moves)
        : distribution_(distribution), moves_(moves), is_moving_(find_moving(distribution, moves)),
          blocks_(blocks_of(distribution, moves, is_moving_)),
          is_labelled_(distribution.shards.size() + moves.size() <= kLabelled),
          layout_(lay_out(blocks_, is_labelled_, !moves.empty())), median_(median_of(distribution))
    {
        for (const Block& block : blocks_)
            largest_ = std::max(
                {largest_, size_of(distribution, block.there), size_of(distribution, block.after)});
        draw_title();
        draw_legend();
        for (std::size_t i = 0; i < blocks_.size(); i++)
            draw_block(i);
    }

    std::string document() const
    {
        const int width = kMargin + layout_.columns * (layout_.block_width + kMargin);
        const int height = kTitle + kMargin + layout_.rows * (layout_.block_height + kMargin);
        return svg_.document(std::max(width, kLegendWidth), height, kStyle);
    }

private:
    void draw_title();
    void draw_legend();
    void draw_block(std::size_t server);
    void draw_sums(int x, int y, const char* kind, const Places& shards);
    void draw_cell(int x, int y, std::size_t place, std::size_t shard, bool is_coming);

    /* The class of a cell's colour. */
    std::string color_of(std::int64_t size) const
    {
        std::size_t step = 0;
        while (size > 0 && step < kSteps.size() &&
               static_cast<double>(size) >= kSteps.at(step) * median_)
            step++;
        return "s" + std::to_string(step);
    }

    const Distribution& distribution_;
    const std::vector<PlannedMove>& moves_;
    const std::vector<bool> is_moving_;
    const std::vector<Block> blocks_;
    const bool is_labelled_;
    const Layout layout_;
    const double median_;
    std::int64_t largest_ = 1; /* of all servers, before or after */
    Svg svg_;
};

void Picture::draw_title()
{
    Places all;
    for (const Block& block : blocks_)
        all.insert(all.end(), block.there.begin(), block.there.end());
    Places moved;
    for (const PlannedMove& move : moves_)
        moved.push_back(move.shard);
    std::string title = count_of(all.size(), "shard") + " on " +
                        count_of(blocks_.size(), "server") + ", " +
                        pretty_size(size_of(distribution_, all));
    if (!moved.empty())
        title += "; " + count_of(moved.size(), "move") + ", " +
                 pretty_size(size_of(distribution_, moved));
    svg_.text(kMargin, 25, "title", title);
}

void Picture::draw_legend()
{
    int x = kMargin;
    const int y = 38;
    const auto draw = [&](const std::string& kind, const std::string& text, int width) {
        svg_.rect(x, y, 12, 12, kind);
        svg_.text(x + 17, y + 10, "", text);
        x += width;
    };
    for (std::size_t i = 0; i <= kSteps.size(); i++) {
        const double step = median_ * kSteps.at(std::min(i, kSteps.size() - 1));
        draw("s" + std::to_string(i),
             (i < kSteps.size() ? "< " : "≥ ") + pretty_size(std::llround(step)), 84);
    }
    if (moves_.empty())
        return draw("now", "all", 62);
    draw("s2 moves", "leaves", 62);
    draw("comes", "comes", 62);
    draw("now", "before", 62);
    draw("after", "after", 62);
}

void Picture::draw_block(std::size_t server)
{
    const Block& block = blocks_[server];
    const std::string& name = distribution_.servers[server].name;
    const int column = static_cast<int>(server) % layout_.columns;
    const int row = static_cast<int>(server) / layout_.columns;
    const int left = kMargin + column * (layout_.block_width + kMargin);
    const int top = kTitle + kMargin / 2 + row * (layout_.block_height + kMargin);
    svg_.rect(left, top, layout_.block_width, layout_.block_height, "block", name);
    const int x = left + kPadding;
    /* About 8 pixels for a bold letter: SVG cannot measure text. */
    const int letters = (layout_.block_width - 2 * kPadding) / 8;
    svg_.text(x, top + 16, "name", shortened(name, static_cast<std::size_t>(letters)));
    draw_sums(x, top + kHeader, "now", block.there);
    if (!moves_.empty())
        draw_sums(x, top + kHeader + kSums, "after", block.after);
    const int y = top + layout_.header + kPadding;
    std::size_t place = 0;
    for (const std::size_t shard : block.there)
        draw_cell(x, y, place++, shard, false);
    for (const std::size_t shard : block.coming)
        draw_cell(x, y, place++, shard, true);
}

/* The bar is as long as the block for the largest size of all servers. */
void Picture::draw_sums(int x, int y, const char* kind, const Places& shards)
{
    const std::int64_t size = size_of(distribution_, shards);
    svg_.text(x, y + 10, "", count_of(shards.size(), "shard") + ", " + pretty_size(size));
    const double part = static_cast<double>(size) / static_cast<double>(largest_);
    const double width = part * (layout_.block_width - 2 * kPadding);
    svg_.rect(x, y + 14, static_cast<int>(std::lround(width)), 4, kind);
}

void Picture::draw_cell(int x, int y, std::size_t place, std::size_t shard, bool is_coming)
{
    const int left = x + static_cast<int>(place) % layout_.per_line * layout_.cell_width;
    const int top = y + static_cast<int>(place) / layout_.per_line * layout_.cell_height;
    const PlacedShard& placed = distribution_.shards[shard];
    const std::string color = color_of(placed.size);
    const std::string kind = is_coming ? "comes" : is_moving_[shard] ? color + " moves" : color;
    svg_.rect(left, top, layout_.cell_width - kGap, layout_.cell_height - kGap, kind,
              placed.schema + ", shard " + std::to_string(placed.number) + ", " +
                  pretty_size(placed.size));
    if (is_labelled_)
        svg_.text(left + 4, top + 13, is_coming ? "" : color + "-text",
                  std::to_string(placed.number));
}

} // namespace

void print_picture(const Distribution& distribution, const std::vector<PlannedMove>& moves)
{
    std::cout << Picture(distribution, moves).document();
}
