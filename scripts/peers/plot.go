package main

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	oursColor  = color.RGBA{R: 0x0b, G: 0x6e, B: 0x4f, A: 0xff}
	otherColor = color.RGBA{R: 0x55, G: 0x5b, B: 0x66, A: 0xff}
)

// bars are medians with the least and the most, from the top down.
type bars struct {
	plotter.XYs
	plotter.XErrors
}

// plot draws a table: a dot for each median, a line from the least to the most. The scale
// is logarithmic, since one may be a thousand times another.
func (t *table) plot(file string) error {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, style := range []*plottext.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font = font.From(sans, style.Font.Size)
	}
	p.Title.Text, p.X.Label.Text = t.Title, t.Unit+" (logarithmic; less is better)"
	p.Title.Padding, p.X.Label.Padding = vg.Points(8), vg.Points(4)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	least, most := math.Inf(1), 0.0
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Values.Min <= 0 {
			continue // a logarithmic scale has no place for it
		}
		least, most = min(least, r.Values.Min), max(most, r.Values.Max)
		one := bars{
			XYs:     plotter.XYs{{X: r.Values.Median, Y: float64(len(t.Rows) - 1 - i)}},
			XErrors: plotter.XErrors{{Low: r.Values.Median - r.Values.Min, High: r.Values.Max - r.Values.Median}},
		}
		dots, err := plotter.NewScatter(one)
		if err != nil {
			return err
		}
		spread, err := plotter.NewXErrorBars(one)
		if err != nil {
			return err
		}
		dots.Shape, dots.Radius, dots.Color = draw.CircleGlyph{}, vg.Points(4), otherColor
		if r.Ours {
			dots.Color = oursColor
		}
		spread.Color, spread.Width = dots.Color, vg.Points(1.5)
		value, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: r.Values.Max, Y: one.XYs[0].Y}}, Labels: []string{r.Values.String()}})
		if err != nil {
			return err
		}
		value.TextStyle[0].Font, value.TextStyle[0].YAlign = font.From(sans, vg.Points(10)), plottext.YCenter
		value.Offset.X = vg.Points(8)
		p.Add(spread, dots, value)
	}
	labels := make([]string, len(t.Rows))
	for i := range t.Rows {
		labels[len(labels)-1-i] = t.Rows[i].Label
	}
	p.NominalY(labels...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(t.Rows))-0.5
	if most == 0 {
		least, most = 1, 10
	}
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most*1.5)))
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	p.Add(grid)
	return p.Save(18*vg.Centimeter, vg.Length(2.6+0.75*float64(len(t.Rows)))*vg.Centimeter, file)
}

// decades has a label at each power of ten.
type decades struct{}

func (decades) Ticks(least, most float64) (ticks []plot.Tick) {
	for d := math.Floor(math.Log10(least)); d <= math.Ceil(math.Log10(most)); d++ {
		at := math.Pow(10, d)
		label := number(at)
		if at >= 1 && at < 100 {
			label = label[:len(label)-len(".00")]
			if at >= 10 {
				label = "10"
			}
		}
		ticks = append(ticks, plot.Tick{Value: at, Label: label})
		for i := 2.0; i < 10; i++ {
			ticks = append(ticks, plot.Tick{Value: at * i})
		}
	}
	return ticks
}
