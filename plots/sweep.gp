# A study's output over one of its inputs, a line a series: gnuplot -c sweep.gp STYLE_FOLDER FORMAT TARGET DATA TITLE XLABEL YLABEL SERIES
n = int(ARG8)
format = ARG2; target = ARG3; wide = 900; high = 480
load ARG1."/style.gp"
set title ARG5
set xlabel ARG6
set ylabel ARG7
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key tmargin right horizontal
set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.05
set for [i=1:12] linetype i linewidth 1.6 linecolor rgb (i % 3 == 1 ? "#000000" : i % 3 == 2 ? "#7a7a7a" : "#b0b0b0") pointtype 4 + i pointsize 1.1
plot for [i=1:n] ARG4 using 1:(column(i + 1)) with linespoints linetype i title columnheader(i + 1)
