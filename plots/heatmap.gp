# A study's output over two inputs, the value in each cell: gnuplot -c heatmap.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS
# DATA: column, row, x, y, value.
format = ARG2; target = ARG3; wide = 1000
eval ARG5
high = 170 + (high_cells < 3 ? 130 : high_cells < 9 ? 70 : 46) * high_cells
load ARG1."/style.gp"
categories = 2
set title title_text
set xlabel x_text
set ylabel y_text
set cblabel value_text offset 2, 0
unset grid; unset key
set border 0
eval "set xtics scale 0 (".columns.")"
eval "set ytics scale 0 (".rows.")"
set xrange [-0.5:wide_cells - 0.5]
set yrange [-0.5:high_cells - 0.5]
set palette defined (0 "#fdf3d0", 0.5 "#4aa89f", 1 "#14365c")
if (most > least) { set cbrange [least:most] } else { set cbrange [least - 1:least + 1]; set cbtics (least) }
middle = least + 0.55 * (most - least)
set style fill solid 1 border linecolor rgb "#ffffff"
shown(v) = sprintf("%.4g", v)
plot ARG4 skip 1 using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):($5 * scale) with boxxyerror linecolor palette, \
     ARG4 skip 1 using 1:2:($5 * scale <= middle ? shown($5 * scale) : "") with labels textcolor rgb "#000000", \
     ARG4 skip 1 using 1:2:($5 * scale > middle ? shown($5 * scale) : "") with labels textcolor rgb "#ffffff"
