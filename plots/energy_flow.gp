# From the grid to the GPUs: gnuplot -c energy_flow.gp STYLE_FOLDER FORMAT TARGET DATA TITLE LABELS BANDS BLOCKS
format = ARG2; target = ARG3; wide = 1100; high = 620
bands = int(ARG7); blocks = int(ARG8)
load ARG1."/style.gp"
categories = 2
set title ARG5
unset border; unset xtics; unset ytics; unset grid; unset key
set xrange [-0.05:3.95]
set yrange [*:1.03]
set style fill solid 1 noborder
plot for [i = 0:bands - 1] ARG4 skip 1 index i using 1:2:3 with filledcurves linecolor rgb (i % 2 == 0 ? "#c9d8e8" : "#f2e3c4"), \
     for [i = bands:blocks - 1] ARG4 index i using 1:2:3 with filledcurves linecolor rgb "#1f3a5f", \
     ARG6 skip 1 using 1:2:3 with labels left textcolor rgb "#111111"
